"""The command line: `dynascope run`, `dynascope fix`, `dynascope report`, `dynascope test`.

Exit status: 0 for success; 1 if a page or the script failed, an expectation does not hold, the report of a run could not be
made or saved, or the reader of the output is gone; 2 for bad usage, which includes files that cannot be read or written; 130 if
interrupted.  If the script of `run` or `fix` fails, its own status is passed on.

The script gets its own `__main__`, `sys.argv` and `sys.path[0]`; its exceptions go to `sys.excepthook`, without
our frames.
"""

from __future__ import annotations

import argparse
import builtins
import contextlib
import os
import runpy
import sys
import traceback
import types
from collections.abc import Callable, Iterator, Sequence
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any, NoReturn, TextIO

from dynascope.compiler import __version__, ranks
from dynascope.compiler.formats import make
from dynascope.compiler.ranks import folder, recorder
from dynascope.compiler.report import Report, encodable
from dynascope.compiler.report.comparison import AGREES
from dynascope.compiler.settings import SAVE_SUFFIXES, Settings
from dynascope.compiler.validate import check_settings, errors_as, save, why_not_savable, with_suggestion
from dynascope.docs_tests.pages import DEFAULT_TIMEOUT, PageError
from dynascope.ranks import RankRun

USAGE, FAILED, INTERRUPTED = 2, 1, 130
_SUFFIXES = ".html, .json, .txt or, except for several ranks, .svg, .dot"


class UsageError(Exception):
    """Bad usage, or a file that cannot be read or written; the message is one line."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        super().error(with_suggestion(message, self))

    def parse_known_args(self, *given: Any) -> Any:  # type: ignore[override]
        chosen, unknown = super().parse_known_args(*given)
        return (self.error(f"unrecognized arguments: {' '.join(unknown)}") if unknown else chosen), []


def build_parser() -> argparse.ArgumentParser:
    """The parser of all subcommands."""
    parser = _Parser(prog="dynascope", description="See what torch.compile does.")
    parser.add_argument("--version", action="version", version=f"dynascope {__version__}", help="Print the version.")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")

    summary = "Run a script as python does, then report on what was compiled."
    torchrun = "Under torchrun, there is one report of all ranks: torchrun --nproc-per-node 4 -m dynascope run SCRIPT."
    run = commands.add_parser("run", help=summary, description=f"{summary} {torchrun}")
    run.add_argument("--expect", metavar="TERMS", help="Fail unless these terms hold: breaks<=1, ranks=alike, ...")
    run.add_argument("--ranks-dir", metavar="DIR", help="Under torchrun: the folder in which each rank writes its file.")
    _add_script(run, _run)

    summary = "Run a script, look for fixes for its graph breaks, and print those that are verified as a patch."
    fix = commands.add_parser("fix", help=summary, description=f"{summary} What the script prints goes to the error stream.")
    fix.add_argument("--apply", action="store_true", help="Write the fixes into the files instead of printing the patch.")
    fix.add_argument("--conditional", action="store_true", help="With the fixes that hold only under a condition, too.")
    limit = "Time limit (default: ten times the time that compiling took, at least 60)."
    fix.add_argument("--fix-seconds", type=float, metavar="SECONDS", help=limit)
    _add_script(fix, _fix)

    report = commands.add_parser("report", help="Report on a folder of TORCH_TRACE logs or ranks, or a report saved as .json.")
    report.set_defaults(execute=_report)
    report.add_argument("trace", metavar="TRACE_DIR")
    strict = "Fail if a record is unknown or damaged, or if the report of ranks has notes."
    report.add_argument("--strict", action="store_true", help=strict)
    report.add_argument("-o", "--output", metavar="PATH", help=f"Save the report instead of printing it: {_SUFFIXES}.")
    report.add_argument("--expect", metavar="TERMS", help="Fail unless these terms hold: ranks=alike, breaks<=1, ...")

    test = commands.add_parser("test", help="Run notebooks as tests.")
    test.set_defaults(execute=_test)
    test.add_argument("paths", nargs="*", default=["."], metavar="PATH", help="Pages and folders of pages (default: here).")
    test.add_argument("--update", action="store_true", help="Store the new outputs of notebooks instead of comparing.")
    limit = "Limit of a cell (default: %(default)g; 0: none)."
    test.add_argument("--timeout", type=float, default=DEFAULT_TIMEOUT, metavar="SECONDS", help=limit)
    return parser


def _add_script(command: argparse.ArgumentParser, execute: Callable[[argparse.Namespace], int]) -> None:
    """Add the arguments of a command that runs a script."""
    command.set_defaults(execute=execute, expect=None)
    command.add_argument("-o", "--output", metavar="PATH", help=f"Save the report too: {_SUFFIXES}.")
    command.add_argument("-m", dest="module", action="store_true", help="SCRIPT is the name of a module.")
    command.add_argument("script", metavar="SCRIPT")
    command.add_argument("arguments", nargs=argparse.REMAINDER, metavar="ARGS").required = False


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    parser = build_parser()
    with _own(sys.stdout) as out, _own(sys.stderr) as err:
        try:
            chosen = parser.parse_args(argv)
            chosen.out, chosen.err = out, err
            if chosen.command is None:
                parser.print_help(sys.stderr)
                return USAGE
            return int(chosen.execute(chosen))
        except UsageError as error:
            print(f"dynascope: {error}", file=sys.stderr)
            return USAGE
        except KeyboardInterrupt:
            print("dynascope: interrupted", file=sys.stderr)
            return INTERRUPTED
        except BrokenPipeError:
            # the reader (`| head`) is gone: nothing more may be printed, not even when Python flushes stdout at exit
            for stream in (sys.stdout, out):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
            return FAILED


# -- run ------------------------------------------------------------------------------------------


def _run(chosen: argparse.Namespace) -> int:
    """Run the script; as one rank of a job, report if it is this rank's turn (`RankRun`)."""
    is_rank = recorder.process_rank() is not None and (recorder.world_size() or 1) > 1
    _check(chosen, of_ranks=is_rank)
    if str(AGREES) in (chosen.expect or ""):
        raise UsageError(f"--expect {AGREES}: a run compares nothing; use dynascope.explain(f, check=True)(x) in the script")
    if not is_rank:
        return _finish(*run_script(chosen), chosen, chosen.out)
    rank = RankRun(chosen.ranks_dir)
    report, status = run_script(chosen, started=rank.start)
    whole = rank.end(report, status)
    return status if whole is None else _finish(whole, status, chosen, chosen.out)


@contextlib.contextmanager
def _own(stream: TextIO) -> Iterator[TextIO]:
    """A stream of our own to where this one goes: a script may close, wrap, detach or redirect its streams."""
    try:
        own = open(os.dup(stream.fileno()), "w", encoding=stream.encoding, errors="backslashreplace")  # noqa: SIM115
    except (AttributeError, OSError, ValueError):  # it is no file
        yield stream
    else:
        with own:
            yield own


def _check(chosen: argparse.Namespace, *, of_ranks: bool = False) -> None:
    """Raise UsageError, before anything runs, if an argument is wrong: a path, or terms that cannot be read."""
    suffixes = ranks.SUFFIXES if of_ranks else SAVE_SUFFIXES
    if chosen.output is not None and (reason := why_not_savable(chosen.output, suffixes)) is not None:
        raise UsageError(f"-o {chosen.output}: {reason}")
    chosen.save_as = os.path.abspath(chosen.output) if chosen.output else None  # the script may change the directory
    if "script" in chosen and not chosen.module and not Path(chosen.script).is_file():
        raise UsageError(f"{chosen.script}: no such file")
    if chosen.expect is not None:
        with errors_as(UsageError, "--expect: "):
            ranks.read_terms(chosen.expect)


def _finish(report: Any, status: int, chosen: argparse.Namespace, stream: TextIO) -> int:
    """Print the report of a run, save it for `-o` and check `--expect`; returns the exit status."""
    _print(_text(report, stream), stream)
    if chosen.save_as and (wrong := save(report, chosen.save_as)) is not None:
        _print(f"-o {chosen.output}: {wrong}", chosen.err)
        return status or FAILED
    if chosen.save_as:
        _print(f"report: {chosen.output}", stream)
    unexpected = _expected(report, chosen)
    return status or unexpected


def _text(report: Any, stream: TextIO) -> str:
    """The report as the terminal shows it."""
    from dynascope.widgets.render.text import takes_colours

    return str(make("ranks txt" if isinstance(report, ranks.RanksReport) else "txt", report, colour=takes_colours(stream)))


def _expected(report: Any, chosen: argparse.Namespace) -> int:
    """The exit status of `--expect`: 0 if the terms hold; otherwise print what differs, and return FAILED."""
    expected = chosen.expect
    if isinstance(report, Report) and expected is not None:  # one process has no ranks that could differ
        expected = ",".join(term for term in expected.replace(" ", "").split(",") if term and term not in ranks.ALIKE)
    if not expected:
        return 0
    try:
        report.expect(expected)
    except AssertionError as error:
        _print(f"--expect: {error}", chosen.err)
        return FAILED
    return 0


def _print(text: str, stream: TextIO) -> None:
    """Print in one write, so that the output of several ranks does not interleave, in characters that the stream can encode.

    What the script has not flushed yet is printed first.
    """
    for of_script in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            of_script.flush()
    stream.write(encodable(text.rstrip("\n") + "\n", stream))
    stream.flush()


# -- fix ------------------------------------------------------------------------------------------


def _fix(chosen: argparse.Namespace) -> int:
    """Print the patch, or apply it; what fits into no file is always printed."""
    _check(chosen)
    settings = Settings(backend="aot_eager", fix=True, fix_seconds=chosen.fix_seconds)
    with errors_as(UsageError):
        check_settings(settings)
    with contextlib.suppress(OSError, ValueError):  # of streams that are no files, the script keeps its own
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # stdout is for the patch
    report, status = run_script(chosen, fix=settings)
    fixes = report.fixes_to_apply(conditional=chosen.conditional)
    report.patched_by = "" if chosen.apply and fixes is not None and fixes.edits else "dynascope fix --apply"
    status = _finish(report, status, chosen, chosen.err)
    if fixes is not None and fixes.edits and chosen.apply:
        from dynascope.compiler.lab.fix import patch
        from dynascope.compiler.lab.fix.text_edits import NotApplicable
        from dynascope.widgets.features.fixes import unplaced_settings

        with errors_as(UsageError, "--apply: ", (NotApplicable, OSError, UnicodeError)):
            written = patch.apply(fixes.edits)
        left = [f"not in the files: {statement}" for statement in unplaced_settings(fixes)]
        _print("\n".join([*(f"fixed: {file}" for file in written), *left]), chosen.err)
    elif fixes is not None and fixes.patch:
        # as it would be in a file: in UTF-8 and with its own line ends, whatever those of the stream
        chosen.out.reconfigure(encoding="utf-8", newline="")
        print(fixes.patch, end="", file=chosen.out, flush=True)
    if report.conditional_fix_set is not None and not chosen.conditional:
        _print("dynascope fix --conditional has the fixes that hold only under a condition, too.", chosen.err)
    return status


# -- the script -----------------------------------------------------------------------------------------


def run_script(
    chosen: argparse.Namespace, *, fix: Settings | None = None, started: Callable[[Any], None] = lambda recording: None
) -> tuple[Any, int]:
    """Run a script or module; returns (report, exit status).  `started` is called with the recording before the script runs.

    The status is 0, that of `sys.exit`, 1 after an exception, or 130 after Ctrl-C.  There is a report in every case.
    `fix`: if given, settings with which to search, afterwards, for fixes for what the script compiles.
    """
    from dynascope.compiler.driver import Run
    from dynascope.widgets.terminal import ProgressLine

    sys.argv = [chosen.script, *chosen.arguments]
    file = None if chosen.module else Path(chosen.script).absolute()  # the script may change the directory
    recording = Run(retraces=False, fix_own=fix, on_progress=ProgressLine(every=20).show)
    try:
        with recording:  # inside the `try`: the report includes the error that ends the script
            started(recording.recording)
            status = _status(chosen.script, file)
    except BaseException as error:
        status = INTERRUPTED if isinstance(error, KeyboardInterrupt) else FAILED
        try:
            sys.excepthook(type(error), error.with_traceback(_own_frames(error)), error.__traceback__)
        except BaseException:  # raised by a hook of the script
            traceback.print_exc()  # prints the error, too: it is the context
    report = recording.report
    if not report.frames and not report.notes and report.error is None:
        how = "torch.compile(model), model.compile() and @torch.compile compile what is then called"
        report.notes.append(f"torch.compile compiled nothing in this process: {how}.")
    return report, status


def _status(script: str, file: Path | None) -> int:
    """Run the file, or the module of this name, and return the exit status."""
    if not getattr(sys.flags, "safe_path", False):  # else (PYTHONSAFEPATH) the folder of our own command is not there
        sys.path[0] = os.getcwd() if file is None else str(file.resolve().parent)
    try:
        if file is None:
            runpy.run_module(script, run_name="__main__", alter_sys=True)
        else:
            _execute(file)
    except SystemExit as error:
        if error.code is None or isinstance(error.code, int):
            return error.code or 0
        print(error.code, file=sys.stderr)  # as Python does
        return FAILED
    return 0


def _execute(path: Path) -> None:
    """Run a file as `__main__`.  The module stays `__main__` afterwards: pickling and late calls need it.

    `path` is absolute, as in Python's own `__file__` and tracebacks; sys.argv keeps the path as it was given.
    """
    main = types.ModuleType("__main__")
    known = {"__file__": str(path), "__builtins__": builtins, "__loader__": SourceFileLoader("__main__", str(path))}
    vars(main).update(known, __spec__=None, __package__=None, __cached__=None)
    sys.modules["__main__"] = main
    exec(compile(path.read_bytes(), str(path), "exec", dont_inherit=True), main.__dict__)  # without our `__future__`


def _own_frames(error: BaseException) -> types.TracebackType | None:
    """The traceback from the script's first frame on.

    If no frame is the script's, this is the whole traceback, or None for a SyntaxError, whose message has the place.
    """
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_globals.get("__name__") != "__main__":
        trace = trace.tb_next
    return trace or (None if isinstance(error, SyntaxError) else error.__traceback__)


# -- report ---------------------------------------------------------------------------------------


def _report(chosen: argparse.Namespace) -> int:
    import dynascope

    trace = Path(chosen.trace)
    _check(chosen, of_ranks=folder.is_job(trace))
    if not trace.exists():
        raise UsageError(f"{chosen.trace}: no such file or folder")
    with errors_as(UsageError, f"{chosen.trace}: ", (ValueError, OSError)):
        report: Any = dynascope.load(trace, strict=chosen.strict)
    if chosen.expect and ranks.read_terms(chosen.expect)[1] and isinstance(report, Report):
        raise UsageError(f"--expect ranks=alike: {chosen.trace} has no logs or files of several ranks")
    if chosen.output and (wrong := save(report, chosen.output)) is not None:
        raise UsageError(f"-o {chosen.output}: {wrong}")
    _print(f"{report.headline()}\nreport: {chosen.output}" if chosen.output else _text(report, chosen.out), chosen.out)
    return _expected(report, chosen)


# -- test -----------------------------------------------------------------------------------------


def _test(chosen: argparse.Namespace) -> int:
    from dynascope.docs_tests.runner import run_pages

    with errors_as(UsageError, errors=(PageError,)):
        return run_pages(chosen.paths, update=chosen.update, timeout=chosen.timeout)
