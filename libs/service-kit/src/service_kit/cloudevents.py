"""CloudEvents 1.0 over Kafka in binary mode: attributes are ``ce_*`` headers, the value is the data as it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from service_kit.bus.port import Message
from service_kit.clock import isoformat

SPEC_VERSION = "1.0"
JSON_CONTENT_TYPE = "application/json"
_REQUIRED = ("specversion", "id", "source", "type")
_KNOWN = frozenset({*_REQUIRED, "subject", "time", "dataschema", "datacontenttype", "sequence", "stream"})


class MalformedEventError(ValueError):
    """A message that is no CloudEvent of version 1.0; reading it again will not help."""


@dataclass(frozen=True)
class CloudEvent:
    """One event.

    Attributes:
        id: UUIDv7; a consumer's inbox knows an event by it.
        source: the service, e.g. ``/agent-runtime``.
        type: name and major version, e.g. ``remit.run.tool_changes.v1``.
        data: JSON text in UTF-8.
        time: when it happened, with a time zone.
        subject: what it is about.
        key: message key; co-locates, promises no order by itself.
        stream: the sequence it belongs to: a run, or ``table:uid``.
        sequence: its place in the stream, from 1 without gaps.
        dataschema: address of the JSON Schema.
        extensions: further attributes; names are lower-case letters and digits.
    """

    id: UUID
    source: str
    type: str
    data: bytes
    time: datetime
    subject: str | None = None
    key: str | None = None
    stream: str | None = None
    sequence: int | None = None
    dataschema: str | None = None
    extensions: Mapping[str, str] = field(default_factory=dict)


def to_message(event: CloudEvent, topic: str) -> Message:
    """The event as a message for a topic.

    Raises:
        ValueError: an extension's name is not allowed, or the time has no zone.
    """
    attributes: dict[str, str | None] = {
        "specversion": SPEC_VERSION,
        "id": str(event.id),
        "source": event.source,
        "type": event.type,
        "time": isoformat(event.time),
        "subject": event.subject,
        "dataschema": event.dataschema,
        "stream": event.stream,
        "sequence": None if event.sequence is None else str(event.sequence),
    }
    for name, value in event.extensions.items():
        if not (name.isascii() and name.isalnum() and name == name.lower()) or name in _KNOWN:
            raise ValueError(f"{name!r} is no name for an extension attribute")
        attributes[name] = value
    headers = [(f"ce_{name}", value) for name, value in attributes.items() if value is not None]
    return Message(topic, event.key, event.data, (("content-type", JSON_CONTENT_TYPE), *headers))


def from_message(message: Message) -> CloudEvent:
    """The event of a message; unknown attributes become extensions.

    Raises:
        MalformedEventError: a required attribute is missing or unreadable, or the message has no value.
    """
    attributes = {name[3:].lower(): value for name, value in message.headers if name.lower().startswith("ce_")}
    missing = [name for name in _REQUIRED if not attributes.get(name)]
    if missing:
        raise MalformedEventError(f"attributes missing: {', '.join(missing)}")
    if not attributes["specversion"].startswith("1."):
        raise MalformedEventError("unknown version of CloudEvents")
    if not message.value:
        raise MalformedEventError("no data")
    try:
        moment = datetime.fromisoformat(attributes["time"])
        sequence = int(attributes["sequence"]) if "sequence" in attributes else None
        event_id = UUID(attributes["id"])
    except (KeyError, ValueError) as error:
        raise MalformedEventError("id, time or sequence cannot be read") from error
    if moment.tzinfo is None:
        raise MalformedEventError("time without a zone")
    return CloudEvent(
        id=event_id,
        source=attributes["source"],
        type=attributes["type"],
        data=message.value,
        time=moment,
        subject=attributes.get("subject"),
        key=message.key,
        stream=attributes.get("stream"),
        sequence=sequence,
        dataschema=attributes.get("dataschema"),
        extensions={name: value for name, value in attributes.items() if name not in _KNOWN},
    )
