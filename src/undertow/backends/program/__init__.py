"""Programs: what a call did, form by form, as data; knows no op, no gradient and no device."""
