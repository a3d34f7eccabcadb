"""Wagtail's side of the comparison, in an environment of its own: one operation per line of the standard input.

A line names an operation, the answer is a line of JSON: ``{"seconds": float}`` or ``{"statements": int}``.
"""

import json
import sys
import time
from pathlib import Path
from urllib.parse import unquote, urlsplit

import django
from django.conf import settings

_APPS = (
    "benchsite", "wagtail.users", "wagtail.documents", "wagtail.images", "wagtail.search", "wagtail.admin", "wagtail",
    "modelcluster", "taggit", "django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions",
    "django.contrib.messages",
)  # fmt: skip


def configure(url):
    """Django on the database of the URL, with Wagtail's usual applications."""
    at = urlsplit(url)
    database = {
        "ENGINE": "django.db.backends.postgresql", "NAME": at.path.lstrip("/"), "HOST": at.hostname, "PORT": at.port,
        "USER": unquote(at.username or ""), "PASSWORD": unquote(at.password or ""), "CONN_MAX_AGE": None,
    }  # fmt: skip
    sys.path.insert(0, str(Path(__file__).parent))
    settings.configure(
        DATABASES={"default": database},
        INSTALLED_APPS=_APPS,
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        SECRET_KEY="a benchmark",
        USE_TZ=True,
        WAGTAIL_SITE_NAME="bench",
        WAGTAILADMIN_BASE_URL="http://bench",
        STATIC_URL="/static/",
        ROOT_URLCONF="benchsite",
        LOGGING_CONFIG=None,
    )
    django.setup()


class Operations:
    """What is measured, as the calls Wagtail's documentation names."""

    def __init__(self):
        from wagtail.models import Page

        self._number = 0
        self._root = Page.objects.get(depth=2)
        self._folders = [self._make(self._root, 0) for _ in range(2)]
        self._moved = self._make(self._folders[0], 10)
        self._sources = {count: self._make(self._root, count) for count in (10, 100)}
        self._edited = self._make(self._root, 10)

    def _make(self, parent, elements):
        from benchsite.models import ContentPage, Element

        self._number += 1
        page = ContentPage(title=f"Page {self._number}", slug=f"page-{self._number}", summary="x")
        page.elements = [Element(header=f"Element {n}", text="text", sort_order=n) for n in range(elements)]
        parent.refresh_from_db()
        return parent.add_child(instance=page)

    def create(self):
        """A page with ten elements."""
        self._make(self._root, 10)

    def update(self):
        """One field, with a revision that is published."""
        from benchsite.models import ContentPage

        self._number += 1
        page = ContentPage.objects.get(pk=self._edited.pk)
        page.title = f"Changed {self._number}"
        page.save_revision().publish()

    def copy10(self):
        """A page with ten elements."""
        self._copy(10)

    def copy100(self):
        """A page with a hundred elements."""
        self._copy(100)

    def _copy(self, elements):
        from benchsite.models import ContentPage

        self._number += 1
        source = ContentPage.objects.get(pk=self._sources[elements].pk)
        source.copy(to=self._root, update_attrs={"slug": f"copy-{self._number}"})

    def move(self):
        """A page with ten elements to another page and the next time back."""
        from benchsite.models import ContentPage

        self._folders.reverse()
        target = ContentPage.objects.get(pk=self._folders[0].pk)
        ContentPage.objects.get(pk=self._moved.pk).move(target, pos="first-child")


def serve():
    """Answer until the input ends."""
    from django.core.management import call_command
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    call_command("migrate", verbosity=0)
    operations = Operations()
    print(json.dumps({"ready": django.get_version()}), flush=True)
    for line in sys.stdin:
        kind, _, name = line.strip().partition(" ")
        work = getattr(operations, name)
        if kind == "count":
            with CaptureQueriesContext(connection) as found:
                work()
            answer = {"statements": len(found)}
        else:
            begin = time.perf_counter()
            work()
            answer = {"seconds": time.perf_counter() - begin}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    configure(sys.argv[1])
    serve()
