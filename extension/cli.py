"""The command line: `dynascope run`, `dynascope fix`, `dynascope report`, `dynascope test`.

Exit status: 0 for success, 1 if a page or the script failed, 2 for bad usage (reported in one line), 130 if interrupted.
`run` exits with the script's own status.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

from dynascope.compiler import __version__
from dynascope.compiler.report import expect
from dynascope.docs_tests.pages import DEFAULT_TIMEOUT
from dynascope.runs.saving import save, why_not

USAGE, FAILED, INTERRUPTED = 2, 1, 130


class UsageError(Exception):
    """Bad usage; the message is one line."""


def build_parser() -> argparse.ArgumentParser:
    """The parser of all subcommands."""
    parser = argparse.ArgumentParser(prog="dynascope", description="See what torch.compile does.")
    parser.add_argument("--version", action="version", version=f"dynascope {__version__}", help="Print the version.")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")

    summary = "Run a script as python does, then report on what was compiled."
    torchrun = "Works for each rank under torchrun: torchrun --no-python ... dynascope run script.py"
    run = commands.add_parser("run", help=summary, description=f"{summary} {torchrun}")
    run.add_argument("-o", "--output", metavar="PATH", help="Save the report too: .html, .json, .svg, .dot or .txt.")
    run.add_argument("-m", dest="module", action="store_true", help="SCRIPT is the name of a module.")
    run.add_argument("--expect", metavar="COUNTS", help="Fail unless these counts hold: graphs=2,breaks<=1 (=, <= or >=).")
    run.set_defaults(execute=_run)
    run.add_argument("script", metavar="SCRIPT")
    run.add_argument("arguments", nargs=argparse.REMAINDER, metavar="ARGS").required = False

    summary = "Run a script, look for fixes for its graph breaks, and print those that are proved as a patch."
    fix = commands.add_parser("fix", help=summary, description=f"{summary} What the script prints goes to the error stream.")
    fix.add_argument("--apply", action="store_true", help="Write the fixes into the files instead of printing the patch.")
    fix.add_argument("-o", "--output", metavar="PATH", help="Save the report: .html, .json, .svg, .dot or .txt.")
    fix.add_argument(
        "--fix-seconds", type=float, default=60, metavar="SECONDS", help="Time limit of the search (default: %(default)g)."
    )
    fix.add_argument("-m", dest="module", action="store_true", help="SCRIPT is the name of a module.")
    fix.set_defaults(execute=_fix)
    fix.add_argument("script", metavar="SCRIPT")
    fix.add_argument("arguments", nargs=argparse.REMAINDER, metavar="ARGS").required = False

    report = commands.add_parser("report", help="Report on a folder of TORCH_TRACE logs (all ranks), or a saved report.json.")
    report.set_defaults(execute=_report)
    report.add_argument("trace", metavar="TRACE_DIR")
    report.add_argument("-o", "--output", metavar="PATH", help="Save it: .html, .json, .svg, .dot or .txt. Else it is printed.")

    test = commands.add_parser("test", help="Run notebooks and MyST pages as tests.")
    test.set_defaults(execute=_test)
    test.add_argument("paths", nargs="*", default=["."], metavar="PATH", help="Pages and folders of pages (default: here).")
    test.add_argument("--update", action="store_true", help="Store the new outputs of notebooks instead of comparing.")
    test.add_argument(
        "--timeout", type=float, default=DEFAULT_TIMEOUT, metavar="SECONDS",
        help="Limit of a cell where neither it nor its page gives one (default: %(default)g; 0: none).",
    )  # fmt: skip
    test.add_argument("-n", "--parallel", type=int, default=1, metavar="N", help="Pages to run at once (default: 1).")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    parser = build_parser()
    chosen = parser.parse_args(argv)
    if chosen.command is None:
        parser.print_help(sys.stderr)
        return USAGE
    try:
        status: int = chosen.execute(chosen)
        return status
    except UsageError as error:
        print(f"dynascope: {error}", file=sys.stderr)
        return USAGE
    except KeyboardInterrupt:
        print("dynascope: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # the reader (`| head`) is gone: print nothing more, and flush nothing at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED


# -- run ------------------------------------------------------------------------------------------


def _run(chosen: argparse.Namespace) -> int:
    from dynascope.script import run_script
    from dynascope.widgets.render.text import takes_colours, to_text

    _check_script(chosen)
    expected = _expected(chosen.expect)
    report, status = run_script(chosen.script, chosen.arguments, module=chosen.module)
    _print(to_text(report, colour=takes_colours(sys.stdout)), sys.stdout)
    try:
        expect.check(report, expected)
    except expect.ExpectationFailed as error:
        _print(f"--expect: {error}", sys.stderr)
        status = status or FAILED
    if not chosen.output:
        return status
    path = _path_of_rank(Path(chosen.output))
    wrong = save(report, path)
    if wrong is not None:
        _print(f"-o {path}: {wrong}", sys.stderr)
        return status or FAILED
    _print(f"report: {path}", sys.stdout)
    return status


def _check_script(chosen: argparse.Namespace) -> None:
    """Raise UsageError, before anything runs, if there is no such script or no report can be saved."""
    _check_output(chosen.output)
    if not chosen.module and not Path(chosen.script).is_file():
        raise UsageError(f"{chosen.script}: no such file")


def _expected(text: str | None) -> list[expect.Expectation]:
    try:
        return expect.parse(text) if text else []
    except ValueError as error:
        raise UsageError(f"--expect: {error}") from None


# -- fix ------------------------------------------------------------------------------------------


def _fix(chosen: argparse.Namespace) -> int:
    from dynascope.compiler.fixes import patch
    from dynascope.compiler.fixes.text_edits import NotApplicable
    from dynascope.script import run_script
    from dynascope.widgets.render.text import takes_colours, to_text

    _check_script(chosen)
    with contextlib.redirect_stdout(sys.stderr):  # a patch alone goes to the output
        report, status = run_script(chosen.script, chosen.arguments, module=chosen.module, fix_seconds=chosen.fix_seconds)
    _print(to_text(report, colour=takes_colours(sys.stderr)), sys.stderr)
    if chosen.output and (wrong := save(report, chosen.output)) is not None:
        _print(f"-o {chosen.output}: {wrong}", sys.stderr)
        status = status or FAILED
    if not report.patch():
        return status
    if not chosen.apply:
        sys.stdout.write(report.patch())
        return status
    try:
        written = patch.apply(report.fix_set.edits)
    except (NotApplicable, OSError, UnicodeError) as reason:
        raise UsageError(f"--apply: {reason}") from None
    _print("\n".join(f"fixed: {file}" for file in written), sys.stderr)
    return status


def rank() -> str | None:
    """This process's rank under torchrun, or None."""
    return os.environ.get("RANK") if os.environ.get("WORLD_SIZE", "1") != "1" else None


def _path_of_rank(path: Path) -> Path:
    """The file that this rank saves: report.html, or report.rank1.html under torchrun."""
    number = rank()
    return path if number is None else path.with_name(f"{path.stem}.rank{number}{path.suffix}")


def _print(text: str, stream: TextIO) -> None:
    """Print; under torchrun with the rank before each line, and in one write, so that ranks do not interleave."""
    number = rank()
    if number is not None:
        text = "\n".join(f"[rank {number}] {line}".rstrip() for line in text.splitlines())
    stream.write(text.rstrip("\n") + "\n")
    stream.flush()


# -- report ---------------------------------------------------------------------------------------


def _report(chosen: argparse.Namespace) -> int:
    import dynascope
    from dynascope.widgets.render.text import takes_colours, to_text

    _check_output(chosen.output)
    if not Path(chosen.trace).exists():
        raise UsageError(f"{chosen.trace}: no such file or folder")
    try:
        report: Any = dynascope.load(chosen.trace)
    except (ValueError, OSError) as error:
        raise UsageError(f"{chosen.trace}: {' '.join(str(error).split())}") from None
    if not chosen.output:
        print(to_text(report, colour=takes_colours(sys.stdout)))
        return 0
    wrong = save(report, chosen.output)
    if wrong is not None:
        raise UsageError(f"-o {chosen.output}: {wrong}")
    print(report.headline())
    print(f"report: {chosen.output}")
    return 0


# -- test -----------------------------------------------------------------------------------------


def _test(chosen: argparse.Namespace) -> int:
    from dynascope.docs_tests.command import run_pages
    from dynascope.docs_tests.runner import PageError

    try:
        return run_pages(chosen.paths, update=chosen.update, timeout=chosen.timeout, parallel=chosen.parallel)
    except PageError as error:
        raise UsageError(str(error)) from None


def _check_output(path: str | None) -> None:
    """Raise UsageError, before anything runs, if no report can be saved there."""
    reason = why_not(path) if path is not None else None
    if reason is not None:
        raise UsageError(f"-o {path}: {reason}")


if __name__ == "__main__":
    sys.exit(main())
