# To be sourced, with `here` naming this folder: finds Node and a browser (CHROME) and installs the packages into .cache/web
# (PACKAGES), once.
export PACKAGES=.cache/web

fail() { echo "$1" >&2; exit 1; }

node -e 'process.exit(process.versions.node.split(".")[0] < 18 ? 1 : 0)' 2>/dev/null && command -v npm >/dev/null ||
    fail "Node 18 or newer with npm is needed; on Debian and Ubuntu: apt-get install nodejs npm; with Homebrew: brew install node"

for browser in "${CHROME:-}" chromium chromium-browser google-chrome google-chrome-stable \
               "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome" "/Applications/Chromium.app/Contents/MacOS/Chromium"; do
    if [ -n "$browser" ] && CHROME=$(command -v "$browser"); then break; fi
    CHROME=""
done
[ -n "$CHROME" ] ||
    fail "Chrome or Chromium is needed; on Debian: apt-get install chromium; with Homebrew: brew install --cask chromium"
export CHROME

# installed.json is written when all is there; what an interrupted npm has left, the next one removes by itself.
if ! cmp -s "$here/package-lock.json" "$PACKAGES/installed.json"; then
    mkdir -p "$PACKAGES"
    cp "$here/package.json" "$here/package-lock.json" "$PACKAGES/"
    (cd "$PACKAGES" && PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1 npm ci --silent --no-audit --no-fund) ||
        fail "npm could not install the packages of $here/package.json; is this machine online?"
    cp "$here/package-lock.json" "$PACKAGES/installed.json"
fi
