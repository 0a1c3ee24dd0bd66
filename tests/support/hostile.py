"""Text that somebody may have put into a name, a message or a path, so that a reader does what it says."""

from __future__ import annotations

from hypothesis import strategies as st

HOSTILE = (
    "$(touch /tmp/pwned)",
    "`touch /tmp/pwned`",
    "'\"; touch /tmp/pwned; #",
    "%0A::error::forged",
    "%250A::error::forged",
    "%25%30%41::error::forged",
    "::error::forged",
    "\r::error file=qnn.yaml,line=1::forged",
    "a\n::add-mask::a\r\n  ::set-output name=x::y\r##[error]forged",
    "x ##[error]forged",
    "##[set-output name=result;]pass",
    "##vso[task.setvariable variable=result]pass",
    "::stop-commands::x\n::x::",
    "\u3000::error::forged",
    "ünïcödé 漢字 🤖 \u202eesrever\u2028line",
    "\u200f\u061cright \u2066to\u2069 left \ufeff\u200b\U000e0041",
    "x,file=/etc/passwd,line=1::forged",
    "=,:;]",
    "| a | b |\n|---|---|\n<script>alert(1)</script> &amp; [a](javascript:b) ![c](//d) **e** `f` \\| @g #1 https://h",
    "](http://example.com) <a href='x'> <!-- --> --> www.example.com a@example.com :skull: $x$ GH-1",
    "</sub></td></table><img src=x onerror=alert(1)>",
    "nul\x00 esc\x1b[31m \x1b]8;;http://x\x07link bell\x07 half \udc80",
    "EOF\nmanifest=forged\nEOF",
    "qnnci-0123456789abcdef0123456789abcdef\nresult=pass",
    "ghadelimiter_0\nresult<<ghadelimiter_1\npass\nghadelimiter_1",
    "long " * 4000,
)
texts = st.one_of(
    st.sampled_from(HOSTILE), st.text(max_size=60), st.text(alphabet="|`<>&:%#[]\n\r\\_*,=@", max_size=30)
)
