#!/usr/bin/env bash
# Builds the sdist and from it the wheel, installs that into an empty environment away from the
# checkout, and runs the sample there, beside folders that have the stages' names.
set -euo pipefail
cd "$(dirname "$0")/.."
checkout=$PWD
python=${PYTHON:-python3}
away=$(mktemp -d)
trap 'rm -rf "$away"' EXIT

"$python" -m venv "$away/build"
"$away/build/bin/pip" install --quiet build
"$away/build/bin/python" -m build --outdir "$away/dist" "$checkout"
"$python" -m venv "$away/empty"
"$away/empty/bin/pip" install --quiet --no-compile -c constraints.txt "$away"/dist/*.whl

mkdir -p "$away/project/readers" "$away/project/chunkers"
echo 'raise SystemExit("of the user")' | tee "$away/project/readers/__init__.py" >"$away/project/chunkers/__init__.py"
cd "$away/project"
export LEPORELLO_CACHE=$away/cache PATH=$away/empty/bin:$PATH
leporello --version
leporello check
leporello run --task sample --limit 2
# One pipeline of each file of built-in declarations; those whose models are not here get a reader without one.
declared() { leporello run "$@" --task sample --limit 1 --out "runs/$1" >/dev/null; }
declared longbench-middle --set 'reader={class: Lead}' --set 'combiner={class: Stuff}'
declared muld-narrativeqa-each --set 'reader={class: BestSentence}'
declared parents
declared scrolls-naive-qasper --set reader.share=0.05
declared shuffle-roberta --set chunker.tokenizer=words --set 'reader={class: Lead}' --set 'combiner={class: Stuff}'
declared tables
declared zero-scrolls-naive-qasper
echo "Grigor keeps the ferry. Ann found the fax." >note.txt
leporello ask note.txt "Who found the fax?"
python -m leporello list >/dev/null
"$away/empty/bin/pip" uninstall --quiet --yes pip setuptools
megabytes=$(du -sm "$away"/empty/lib/python*/site-packages | cut -f1)
echo "site-packages: $megabytes MB"
test "$megabytes" -le 540 # 100 of them are our own reader: onnxruntime, and its weights
