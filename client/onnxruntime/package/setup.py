"""The wheel is for its platform, since it contains libraries (scripts/wheel puts them there), and for every Python 3."""
from setuptools import Distribution, setup
from wheel.bdist_wheel import bdist_wheel


class BinaryDistribution(Distribution):
    def has_ext_modules(self):
        return True


class BinaryWheel(bdist_wheel):
    def get_tag(self):
        return "py3", "none", super().get_tag()[2]


setup(cmdclass={"bdist_wheel": BinaryWheel}, distclass=BinaryDistribution)
