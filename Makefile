# Each of these works alone, on a fresh machine with Python 3.10 or newer: they look at the machine first, then make .venv.
#
#   make demo                      run the tour in a real kernel; report and executed notebook in build/demo
#   make check                     format, lint, types, layers, front end and fast tests: before a commit
#   make test                      everything that CI runs
#   make test-all                  all tests at full size, and 60 small models of packages from PyPI; not in CI
#   make test-real                 these models alone, against torch's own log
#   make lab                       open the tour in JupyterLab
#   make bench                     measure what recording costs
#   make docs                      execute the tutorials and build an offline site in build/docs
#   make test-torch TORCH=2.9.1    the tests that depend on torch, under another torch (its own environment, below build/)
#   make test-python PYTHON=...    all tests, under another Python (and TORCH; its own environment, below build/)
#   make gpu                       what needs a GPU: tests, traces, times and pages, into build/gpu; needs torch, no network
#   make gpu-adopt                 turn what make gpu found into committed traces and a page
#   make pins                      write binder/constraints.txt from what is in .venv
#
# PYTHON=python3.12 chooses the Python, ARGS="-k name" goes to pytest, TORCH_INDEX=URL is where a new
# .venv gets torch from.

PYTHON ?= $(firstword $(foreach name,python3 python3.13 python3.12 python3.11 python3.10 python3.14 python,$(shell command -v $(name))))
TORCH ?= 2.13.0
ARGS ?=

ifeq ($(strip $(PYTHON)),)
$(error No Python found: install Python 3.10 or newer, or say where it is: make PYTHON=/path/to/python3 ...)
endif
ifeq ($(shell command -v "$(PYTHON)"),)
$(error There is no $(PYTHON): give a Python that exists, such as make PYTHON=/path/to/python3.11 ...)
endif

export TORCH
TASK = @"$(PYTHON)" -m tools.tasks

.PHONY: help demo check test test-all test-real test-torch test-python lab bench docs pins gpu gpu-adopt clean
help:
	@sed -n 's/^#   //p' Makefile

demo check test test-all test-real test-torch test-python lab bench docs pins:
	$(TASK) $@ $(ARGS)

gpu:
	@"$(PYTHON)" -m tools.gpu record $(ARGS)

gpu-adopt:
	@"$(PYTHON)" -m tools.gpu adopt $(ARGS)

clean:
	rm -rf build dist .venv *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
