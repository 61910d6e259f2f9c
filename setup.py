"""The metadata that depends on where the project is published; everything else is in pyproject.toml.

A package index shows the README alone, so its links to other files lead nowhere there. When DYNASCOPE_REPOSITORY is set while a
distribution is built (such as https://github.com/OWNER/NAME), they become absolute, and the project gets its URLs.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from setuptools import setup


def absolute_links(readme: str, repository: str) -> str:
    """The README with links to files of the repository, and its pictures, as absolute URLs."""
    readme = re.sub(r"(!\[[^\]]*\]\()(?!https?:|#)", rf"\g<1>{repository}/raw/HEAD/", readme)
    readme = re.sub(r"((?:src|srcset)=\")(?!https?:)", rf"\g<1>{repository}/raw/HEAD/", readme)
    return re.sub(r"(?<!!)(\[[^\]]*\]\()(?!https?:|#)", rf"\g<1>{repository}/blob/HEAD/", readme)


def metadata(repository: str) -> dict[str, object]:
    """The arguments of `setup` for a project published at `repository`, a URL or an empty string."""
    readme = (Path(__file__).resolve().parent / "README.md").read_text(encoding="utf-8")
    described: dict[str, object] = {"long_description": readme, "long_description_content_type": "text/markdown"}
    if repository:
        described["long_description"] = absolute_links(readme, repository)
        described["project_urls"] = {
            "Source": repository,
            "Documentation": f"{repository}/blob/HEAD/README.md",
            "Changelog": f"{repository}/blob/HEAD/CHANGELOG.md",
            "Issues": f"{repository}/issues",
        }
    return described


if __name__ == "__main__":
    setup(**metadata(os.environ.get("DYNASCOPE_REPOSITORY", "").rstrip("/")))
