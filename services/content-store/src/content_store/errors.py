"""Problems several rooms of the store answer with. What cannot be read is answered like what is not there."""

from __future__ import annotations

from service_kit.problems import ProblemError


class RecordNotFoundError(ProblemError):
    """There is no such record, or the reader may not read it."""

    code = "record_not_found"
    status = 404
    title = "There is no such record"


class TableNotFoundError(ProblemError):
    """There is no such table, or the reader may not read it."""

    code = "table_not_found"
    status = 404
    title = "There is no such table"


class PageNotFoundError(ProblemError):
    """There is no such page, or the reader may not read it."""

    code = "page_not_found"
    status = 404
    title = "There is no such page"


class WorkspaceNotFoundError(ProblemError):
    """There is no such workspace, or the user may not work in it."""

    code = "workspace_not_found"
    status = 404
    title = "There is no such workspace"


class LanguageNotFoundError(ProblemError):
    """There is no such language, or the user may not work in it."""

    code = "language_not_found"
    status = 404
    title = "There is no such language"


class FieldUnknownError(ProblemError):
    """A field that is asked for or filtered by is not there, or the reader may not read it."""

    code = "field_unknown"
    status = 422
    title = "There is no such field"
    detail_text = "{table} has no field {field}."


class FilterInvalidError(ProblemError):
    """A filter cannot be read, or its value does not fit the field."""

    code = "filter_invalid"
    status = 422
    title = "The filter cannot be used"
    detail_text = "A filter reads field:value, and the value has to fit the field."


class CursorInvalidError(ProblemError):
    """The cursor was not given out by this list."""

    code = "cursor_invalid"
    status = 422
    title = "The cursor is not valid"


class CallsOnlyError(ProblemError):
    """The caller writes through calls only."""

    code = "calls_only"
    status = 403
    title = "This service writes through calls only"


class AdministratorsOnlyError(ProblemError):
    """The list tells of the whole site."""

    code = "administrators_only"
    status = 403
    title = "Only administrators may do that"
