"""Settings of the documentation site: Sphinx with MyST and furo, nothing from the network."""

import undertow

project = "Undertow"
copyright = "the authors of Undertow"
release = version = undertow.__version__
extensions = ["myst_parser"]
myst_enable_extensions = ["attrs_block"]
myst_heading_anchors = 4
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"Undertow {release}"
html_static_path = ["static"]
html_favicon = "static/icon.svg"
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}
pygments_style = "tango"
# Examples of text that is no program: kernels in the IR's own notation, with … in it.
suppress_warnings = ["misc.highlighting_failure"]
