"""The form of a sink's files: as their manifest records it, and as readers take it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from s3lake.index.commit import documents

if TYPE_CHECKING:
    from s3lake.config.model import Sink
    from s3lake.lake.objects.shape import ObjectShape


def form_of(sink: Sink) -> documents.FileForm:
    """Return the form of the sink's files, for their manifest."""
    frame, envelope, sidecars = sink.format.effective_framing, sink.envelope, sink.sidecars
    return documents.FileForm(
        format=sink.format.type,
        value=sink.converter.value,
        key=sink.converter.key,
        codec=sink.format.codec,
        header=sink.format.header,
        framing=(frame.opening, frame.between, frame.closing) if frame else None,
        envelope=msgspec.convert(envelope.model_dump(), documents.EnvelopeForm) if envelope else None,
        sidecars=documents.SidecarForm(
            sidecars.keys,
            sidecars.headers,
            codecs=tuple(sorted(sidecars.codecs.items())),
        ),
        transformed=sink.transformed,
        transforms=sink.transforms_digest,
        null_to_default=sink.converter.null_to_default,
    )


def shape_of(sink: Sink) -> ObjectShape:
    """Return the shape of the sink's files, as readers get it from their manifest."""
    from s3lake.lake.objects.shape import ObjectShape

    return ObjectShape.from_form(form_of(sink))
