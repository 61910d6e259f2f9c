"""What every test has: settings that keep the machine's own out, and which tests only `make test-all` runs."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import light_imports  # noqa: F401  (before what imports nbformat)
import pytest
from notebook_making import Maker, make_notebook

ROOT = Path(__file__).resolve().parent.parent
# A run that a shell started in the background ignores Ctrl-C, and so would every kernel and command that tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

#: what only `make test-all` runs: parts of node ids.  Each takes long and has a sister in `make test`, or can break only by
#: changes that are made knowingly (pictures, other runners, time limits)
FULL = (
    "graph.ipynb::", "break.ipynb::", "functions.ipynb::", "hatches.ipynb::", "recompiles.ipynb::", "time.ipynb::",
    "model.ipynb::", "ci.ipynb::", "ranks.ipynb::", "none.ipynb::", "go.ipynb::", "differ.ipynb::", "at_any_width[live",
    "test_graph_alone.py", "test_readme_pictures.py", "test_view_saved.py", "test_fixes_in_lab.py", "test_a_hundred_runs",
    "test_after_a_kernel_restart", "test_view_in_vscode.py", "test_a_file_written_without_us",
    "on_its_own[backward]", "tried[overflow]", "tried[variance]", "is_known[a lowering, 0]", "is_known[sums in",
    "is_known[overflow", "models_of_text[Gemma", "models_of_text[Qwen", "models_of_text[Rwkv", "stands_now[text0]",
    "stands_now[text1]", "test_where_the_numbers_begin", "axe_finds_nothing_grave[dark]", "can_be_read[dark",
    "can_be_read[high-contrast-light", "what_is_around_it", "print_shows_all_of_it[r", "print_shows_all_of_it[l",
    "test_rank_children.py", "test_sharded_ranks", "under_the_users_own_torchrun",
    "test_pytest_plugin.py::test_a_failing_block", "in_a_projects_own_tests", "test_papermill", "test_without_subshells",
    "test_a_run_again_can_be_stopped", "test_a_hung_cell_is_killed", "faults_are_named[a time-out]",
    "faults_are_named[an error",
    "test_a_script_that_wraps_or_keeps", "test_a_report_that_cannot_be_saved", "the_names_that_python_gives_it",
    "test_steps_are_rehearsed",
    "test_stages.py::test_cold_warm", "test_invisible_hooks.py::test_logs_and", "test_the_answer_is_known[long: ",
    "test_search.py::test_functions_methods_closures_and_modules", "test_what_is_chosen_holds_on_new_inputs",
    "trying-inductor]", "test_products_and_sums_that", "first_gradient_that_differs_is_named[1]",
    "test_a_parameter_that_a_graph_changes", "tests/real/", "test_recompiles_that_go_", "test_a_script_that_compiles_nothing",
    "axe_finds_nothing_grave[light]", "is_judged_by_its_precision", "becomes_an_operator", "other_inputs_make_endless",
    "the_byte_order_mark[<lambda>0]", "is_written_where_it_is_called[{f}", "is_written_where_it_is_called[@torch.compile\\ndef",
    "and_a_new_break_is_named", "without_outputs_has_nothing", "so_it_does_under_inductor[500]", "every_change_is_undone[6]",
    "tour.ipynb::", "test_pages_are_tests_and", "test_the_scripts_own_end_is_ours[", "test_a_script_is_fixed",
    "statements_of_a_cell_are_fixed", "test_run_again_waits_for", "test_view_in_time.py",
    "tours_first_cell_runs", "program_differs_from_eager_a_fix", "is_written_where_it_is_called[before4",
    "of_changes_whose_sum_is_wrong", "test_interrupting_stops_everything", "is_known[softmax_of",
    "to_one_with_a_conditional_fix", "that_only_moves_a_break", "says_truly_why[0]",
    "what_the_cell_reported[sys", "what_the_cell_reported[d", "what_the_cell_reported[c", "models_of_text[Mamba2",
    "without_a_gpu_one_line", "fails_is_left_out", "tried[random numbers]", "is_called[@torch.compile\\n{f}",
    "test_an_interrupt_at_any_moment_leaves_everything", "run again-a line in", "run again-fullgraph",
    "run again-the line of the cell",
)  # fmt: skip
#: one JupyterLab and one browser; one build
TOGETHER = ("tests/browser/", "tests/unit/packaging/")

try:
    from hypothesis import settings
except ImportError:  # another torch's environment may lack it
    pass
else:
    # compiling is slow and of uneven speed; a run has to fail for the same reason twice, here and in CI.
    # DYNASCOPE_SEED=random draws new programs.
    same = os.environ.get("DYNASCOPE_SEED") != "random"
    settings.register_profile("dynascope", deadline=None, derandomize=same, print_blob=True)
    settings.load_profile("dynascope")


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Leave the 500,000 objects of torch and the tests out of what looks at every object: garbage collections, runs of a cell.

    The tests run thousands of cells in one process, and take half the time so; those in kernels and commands see all objects.
    """
    runs_tests = session.config.getoption("dist", "no") == "no"  # pytest-xdist starts worker processes otherwise
    if runs_tests:
        import torch._dynamo.convert_frame
        import torch._functorch.aot_autograd  # noqa: F401

        gc.freeze()
    result = yield
    if runs_tests:
        gc.freeze()
    return result


@pytest.fixture(scope="module", autouse=True)
def earlier_objects() -> None:
    """Freeze what earlier modules of tests have imported, as `pytest_collection` freezes torch."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def unmeasured_guards() -> Iterator[None]:
    """Keep torch from timing each compile's guards: it evicts the CPU's caches for that, a fifth of the time of all tests."""
    from dynascope.compiler.capture.torch_private import config

    with config.unmeasured_guards():
        yield


@pytest.fixture(scope="session", autouse=True)
def no_leaks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Jupyter and IPython read and write below a folder of the test run, whoever started it."""
    place = tmp_path_factory.mktemp("jupyter")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"):
            patch.setenv(name, str(place / name.lower()))
        for name in ("JUPYTER_PATH", "JUPYTER_CONFIG_PATH", "PYTHONPATH", "DYNASCOPE_BACKEND"):
            patch.delenv(name, raising=False)
        patch.setenv("JUPYTER_PLATFORM_DIRS", "1")
        patch.setenv("DYNASCOPE_DRAWING_ERRORS", "raise")  # a view that cannot be drawn fails the test, in a kernel, too
        yield


@pytest.fixture(scope="session")
def root() -> Path:
    """The project's folder."""
    return ROOT


@pytest.fixture
def make(tmp_path: Path) -> Maker:
    """make(*cells, name=..., **metadata): an .ipynb of these cells (sources or cells) in the test's folder."""
    return lambda *cells, name="page.ipynb", **metadata: make_notebook(tmp_path / name, *cells, **metadata)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what only `make test-all` runs."""
    for item in items:
        if any(part in item.nodeid for part in FULL):
            item.add_marker("full")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """`--dist loadscope`: who shares a server, a build or a kernel runs in one process, in the order of the command line.

    (xdist's own groups, `--dist loadgroup`, have no effect in pytest 9.2: they rename tests, which it does not see.)
    """
    if config.getvalue("dist") != "loadscope":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class ByFixture(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            if file.startswith("tests/property/"):
                return nodeid  # long tests that share nothing
            return next((folder for folder in TOGETHER if file.startswith(folder)), file)

    config.option.loadscopereorder = False
    return ByFixture(config, log)
