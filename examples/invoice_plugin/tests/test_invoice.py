"""The domain, alone."""

import pytest
from invoice_plugin.invoice import Invoice, read_invoice


def test_number_and_total_are_read():
    assert read_invoice(b"%PDF-1.7 Invoice A7 Total: 120") == Invoice("A7", 120)


def test_anything_else_is_refused():
    with pytest.raises(ValueError, match="no invoice"):
        read_invoice(b"%PDF-1.7 a poem")
