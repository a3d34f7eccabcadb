"""A page whose content is rows of its own, as content elements are."""

from django.db import models
from modelcluster.fields import ParentalKey
from wagtail.models import Orderable, Page


class ContentPage(Page):
    """A page with elements."""

    summary = models.TextField(blank=True)


class Element(Orderable):
    """One element of a page."""

    page = ParentalKey(ContentPage, on_delete=models.CASCADE, related_name="elements")
    header = models.CharField(max_length=255)
    text = models.TextField(blank=True)
