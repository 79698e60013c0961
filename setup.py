"""Maps the four layer folders onto one import package (docs/decisions/0001-layout.md)."""

from setuptools import find_packages, setup

ROOT = "canon_hermes_plugin"
FOLDERS = {ROOT: "entrypoints", **{f"{ROOT}.{layer}": layer for layer in ("ports", "domain", "infrastructure")}}

setup(
    package_dir=FOLDERS,
    packages=[
        name for top, folder in FOLDERS.items() for name in (top, *(f"{top}.{sub}" for sub in find_packages(folder)))
    ],
)
