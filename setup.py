"""The packages of the distribution; all else is in pyproject.toml.

The folder bin/ is installed under a name of its own, which pyproject.toml cannot say together with
a search for the other packages.
"""

from setuptools import find_packages, setup

PROGRAMS = "keras_transformer_programs"

setup(
    packages=[
        *find_packages(include=["keras_transformer*", "pipelines*"]),
        *(PROGRAMS, f"{PROGRAMS}.command"),
    ],
    package_dir={PROGRAMS: "bin"},
)
