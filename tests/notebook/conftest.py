"""The browser of the tests of pages, for cards."""

from tests.report.conftest import browser as browser
