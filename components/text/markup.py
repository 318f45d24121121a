"""HTML in user text: tags, scripts and entities."""

from __future__ import annotations

import html
import re

from components.text.edits import Edits, substitute

_BLOCK_ELEMENTS = (
    "address|article|aside|blockquote|body|br|caption|center|dd|div|dl|dt|fieldset|figcaption|figure|footer|form|h[1-6]"
    "|head|header|hr|html|iframe|legend|li|link|main|meta|nav|noscript|ol|option|p|pre|script|section|select|style"
    "|table|tbody|td|textarea|tfoot|th|thead|title|tr|ul|video"
)
_INLINE_ELEMENTS = (
    "a|abbr|audio|b|bdi|bdo|big|button|canvas|cite|code|data|del|dfn|em|font|i|img|input|ins|kbd|label|mark|object|q"
    "|rp|rt|ruby|s|samp|small|source|span|strike|strong|sub|sup|svg|time|tt|u|var|wbr"
)
_ATTRIBUTES = (
    r"(?:\s+(?:[a-z][\w:.-]*\s*=\s*(?:\"[^\"]*\"|'[^']*'|[^\s\"'<>=`]+)"
    r"|async|checked|controls|defer|disabled|hidden|multiple|nowrap|readonly|required|selected))*"
)
_HTML = re.compile(
    r"(?P<removed><!--.*?-->|<!doctype[^>]*>|<(?P<hidden>script|style)\b[^>]*>.*?</(?P=hidden)\s*>)"
    rf"|(?P<block></?(?:{_BLOCK_ELEMENTS}){_ATTRIBUTES}\s*/?>)"
    rf"|(?P<inline></?(?:{_INLINE_ELEMENTS}){_ATTRIBUTES}\s*/?>)"
    r"|(?P<entity>&(?:\#[0-9]{1,7}|\#x[0-9a-f]{1,6}|[a-z][a-z0-9]{1,31});)",
    re.IGNORECASE | re.DOTALL,
)


def strip_html(text: str) -> tuple[str, Edits]:
    """Remove tags, comments, scripts and styles and decode entities, all in one pass over the original text.

    One pass means that a decoded ``&lt;p&gt;`` stays as the text ``<p>``, and ``&amp;amp;`` becomes ``&amp;``. Only
    known element names with well-formed attributes are tags, so that ``a<b and c>d`` stays. A block element becomes a
    space, an inline element nothing.
    """

    def replacement(match: re.Match[str]) -> str:
        if match["entity"]:
            return html.unescape(match.group())
        return "" if match["inline"] else " "

    return substitute(text, _HTML, replacement)
