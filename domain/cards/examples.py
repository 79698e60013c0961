"""Cards to start from, by name. Data only; a test holds each of them valid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Example:
    """A valid card and one line that says when to start from it."""

    purpose: str
    card: dict[str, Any]


def _card(title: str, fallback: str, *blocks: dict[str, Any], **keys: str) -> dict[str, Any]:
    return {"schema": "canon.card.v1", "title": title, "fallbackText": fallback, **keys, "blocks": list(blocks)}


REPORT: Final = _card(
    "Harbour shift report",
    "Shift report: two vessels unloaded, crane 3 is out of service until Thursday.",
    {"kind": "summary", "text": "Two vessels unloaded, one waiting for the tide."},
    {
        "kind": "metricGrid",
        "metrics": [
            {"label": "Containers moved", "value": "412", "delta": "+8 %", "tone": "positive"},
            {"label": "Cranes in service", "value": "5 of 6", "tone": "warning"},
        ],
    },
    {"kind": "callout", "tone": "warning", "title": "Crane 3", "text": "Out of service until Thursday morning."},
    tone="primary",
)

DECISION: Final = _card(
    "Release berth 4?",
    "Berth 4 can be released now. Please answer: release it, or keep it closed and say why.",
    {"kind": "summary", "text": "The inspection is complete. Releasing the berth lets the next vessel dock at 14:00."},
    {
        "kind": "actions",
        "actions": [
            {
                "id": "release",
                "label": "Release",
                "tone": "positive",
                "fields": [
                    {"id": "from", "label": "Release from", "type": "date", "required": True, "min": "2031-01-01"},
                    {"id": "note", "label": "Note for the pilot", "type": "textarea", "placeholder": "Optional"},
                ],
            },
            {
                "id": "keep",
                "label": "Keep closed",
                "tone": "danger",
                "fields": [
                    {
                        "id": "reason",
                        "label": "Reason",
                        "type": "select",
                        "required": True,
                        "allowOther": True,
                        "choices": [
                            {"label": "Repair not finished", "value": "repair"},
                            {"label": "Weather", "value": "weather", "description": "Wind above the limit"},
                        ],
                    }
                ],
            },
        ],
    },
)

CHART: Final = _card(
    "Containers by day",
    "Containers moved: Monday 380, Tuesday 412, Wednesday 365.",
    {
        "kind": "chart",
        "chart": "line",
        "yLabel": "containers",
        "series": [
            {
                "name": "North quay",
                "points": [{"x": "Mon", "y": 380}, {"x": "Tue", "y": 412}, {"x": "Wed", "y": 365}],
            }
        ],
    },
)

TABLE: Final = _card(
    "Berths today",
    "Berth 2: Aurora, leaves 16:30. Berth 4: free.",
    {
        "kind": "table",
        "columns": ["Berth", "Vessel", "Leaves"],
        "rows": [["2", "Aurora", "16:30"], ["4", "free", "-"]],
    },
)

CHECKLIST: Final = _card(
    "Before departure",
    "Done: papers checked. Pending: pilot on board. Blocked: fuel, the barge is late.",
    {
        "kind": "list",
        "items": [
            {"label": "Papers checked", "status": "done"},
            {"label": "Pilot on board", "status": "pending"},
            {"label": "Fuel", "detail": "The barge is late", "status": "blocked"},
        ],
    },
)

DETAILS: Final = _card(
    "What I read from the invoice",
    "Invoice 8841 over 1,240.00 EUR; the due date is uncertain.",
    {
        "kind": "details",
        "rows": [
            {"label": "Number", "value": "8841", "confidence": 0.99},
            {"label": "Total", "value": "1,240.00 EUR", "confidence": 0.97},
            {"label": "Due", "value": "2031-02-01", "confidence": 0.4, "tone": "warning", "hint": "Smudged scan"},
        ],
    },
)

DOCUMENT: Final = _card(
    "Signed berth contract",
    "The signed contract for berth 4, two pages.",
    {
        "kind": "mediaPreview",
        "title": "berth-4-contract.pdf",
        "fallbackText": "berth-4-contract.pdf, two pages",
        "media": {
            "kind": "file",
            "url": "https://canon.example/replace-with-the-address-returned-by-the-upload",
            "mimeType": "application/pdf",
            "fileName": "berth-4-contract.pdf",
            "page": 1,
            "pageCount": 2,
        },
    },
)

FORM: Final = _card(
    "Register a vessel",
    "Please register the vessel: name, kind, length, services, arrival, contact.",
    {
        "kind": "actions",
        "actions": [
            {
                "id": "register",
                "label": "Register",
                "fields": [
                    {"id": "name", "label": "Name", "type": "text", "required": True},
                    {
                        "id": "kind",
                        "label": "Kind",
                        "type": "searchSelect",
                        "choices": [{"label": "Container ship"}, {"label": "Tanker"}, {"label": "Ferry"}],
                    },
                    {"id": "length", "label": "Length in metres", "type": "number", "min": 5, "max": 450, "step": 0.5},
                    {"id": "deposit", "label": "Deposit", "type": "currency", "currencyCode": "EUR", "precision": 2},
                    {
                        "id": "services",
                        "label": "Services",
                        "type": "multiSelect",
                        "choices": [{"label": "Water", "value": "water"}, {"label": "Shore power", "value": "power"}],
                    },
                    {"id": "arrival", "label": "Arrival", "type": "date"},
                    {"id": "dangerous", "label": "Dangerous goods on board", "type": "boolean"},
                    {"id": "phone", "label": "Contact of the master", "type": "text", "sensitive": True},
                ],
            }
        ],
    },
)

LINE_ITEMS: Final = _card(
    "Order supplies",
    "Please list the supplies to order, with quantity and price.",
    {
        "kind": "actions",
        "actions": [
            {
                "id": "order",
                "label": "Order",
                "tone": "positive",
                "fields": [
                    {
                        "id": "items",
                        "label": "Items",
                        "type": "lineItems",
                        "minRows": 1,
                        "maxRows": 20,
                        "columns": [
                            {"id": "what", "label": "Item", "type": "text", "required": True},
                            {"id": "quantity", "label": "Quantity", "type": "number", "min": 1, "precision": 0},
                            {"id": "price", "label": "Price", "type": "currency", "currencyCode": "EUR"},
                        ],
                    }
                ],
            },
            {"id": "skip", "label": "Nothing needed"},
        ],
    },
)

EXAMPLES: Final[dict[str, Example]] = {
    "report": Example("status: a summary, key figures and a warning", REPORT),
    "decision": Example("a decision with two answers and their fields", DECISION),
    "chart": Example("a line chart", CHART),
    "table": Example("a table of strings", TABLE),
    "checklist": Example("steps with their status", CHECKLIST),
    "details": Example("extracted values with confidence", DETAILS),
    "document": Example("a preview of an uploaded document", DOCUMENT),
    "form": Example("a form with most field types", FORM),
    "line-items": Example("rows the human fills in", LINE_ITEMS),
}
