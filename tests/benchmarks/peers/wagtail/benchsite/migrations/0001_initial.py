"""The two tables, after whatever Wagtail's newest migration is."""

import pkgutil

import django.db.models.deletion
import modelcluster.fields
import wagtail.migrations
from django.db import migrations, models

_NEWEST = max(module.name for module in pkgutil.iter_modules(wagtail.migrations.__path__))


class Migration(migrations.Migration):
    """Makes them."""

    initial = True
    dependencies = [("wagtailcore", _NEWEST)]
    operations = [
        migrations.CreateModel(
            "ContentPage",
            [
                (
                    "page_ptr",
                    models.OneToOneField(
                        auto_created=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        parent_link=True,
                        primary_key=True,
                        serialize=False,
                        to="wagtailcore.page",
                    ),
                ),
                ("summary", models.TextField(blank=True)),
            ],
            bases=("wagtailcore.page",),
        ),
        migrations.CreateModel(
            "Element",
            [
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("sort_order", models.IntegerField(blank=True, editable=False, null=True)),
                ("header", models.CharField(max_length=255)),
                ("text", models.TextField(blank=True)),
                (
                    "page",
                    modelcluster.fields.ParentalKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="elements",
                        to="benchsite.contentpage",
                    ),
                ),
            ],
            options={"ordering": ["sort_order"], "abstract": False},
        ),
    ]
