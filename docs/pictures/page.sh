#!/usr/bin/env bash
# Takes docs/pictures/page.png: the page of a trace, in Chromium. After ./test build.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
ringmark=$(realpath "${CARGO_TARGET_DIR:-target}/release/ringmark")
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
source=$PWD
(
    cd "$place"
    "$ringmark" run -o demo.rmk -- "$ringmark" demo --index "$source/docs" >/dev/null 2>&1
    "$ringmark" report --html -o page.html demo.rmk 2>/dev/null
)
chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size=1100,420 --virtual-time-budget=4000 \
    --screenshot="$place/page.png" "$place/page.html" >/dev/null 2>&1
cp "$place/page.png" docs/pictures/page.png
