.PHONY: demo demo-team unit test test-engines exploits check coverage soak soak-logs bench chaos diagnose audit docs pictures clean

demo: ## the main job on this machine
	@scripts/demo

demo-team: ## a team on two machines: users, data, a quota, a secret, the audit log; it takes root
	@scripts/demo-team

unit: ## the tests that need no engine, no PostgreSQL, no root and no network: a minute or two
	@scripts/unit

test: ## everything, against a real engine
	@scripts/test

test-engines: ## every test that needs an engine, on Docker Engine 26.1 with both image stores
	@scripts/test-engines

exploits: ## every exploit of docs/security.md against this code: what was tried, and what happened
	@scripts/exploits

check: ## style, types, floors: seconds
	@scripts/check

bench: ## how fast it is here, beside other tools: 35 to 50 minutes
	@scripts/setup && DOCKER_HOST=$$(scripts/engine/up) && export DOCKER_HOST && scripts/engine/images base tensorflow pytorch && scripts/engine/chromium && scripts/slurm/packages && .venv/bin/python -m benchmarks

diagnose: ## trainings that hang, and what riseml says of each: docs/diagnosis.md, fifteen minutes
	@scripts/diagnose

chaos: ## some hundred crashes and faults of every kind, and what they cost: under 20 minutes
	@scripts/chaos

audit: ## known vulnerabilities of the packages that riseml brings; it takes a connection to the Python Package Index
	@scripts/audit

docs: ## the pages of docs/ as a site in build/site: seconds; a broken link fails it
	@scripts/setup && .venv/bin/python -m scripts.docs_site

pictures: ## docs/architecture-*.svg, drawn from the imports of the code
	@scripts/setup && .venv/bin/python -m scripts.architecture

coverage: ## the tests again, with what they reach
	@scripts/test --cov --cov-report=term

soak: ## random histories of the loop with other seeds each time: make soak MINUTES=30
	@scripts/soak $(MINUTES)

soak-logs: ## 10,000 random histories of a log, with other ones each time: ten minutes
	@scripts/soak-logs

clean: ## end the private engine and the private PostgreSQL, if the tests had to start them
	@scripts/engine/down && scripts/postgres/down
