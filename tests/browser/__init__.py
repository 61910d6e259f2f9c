"""Tests in a real JupyterLab and a real Chromium: `from browser.lab import LabPage`.

A package, so that its fixtures (one server, one browser) end with its last test.
"""
