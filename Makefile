# Everything a developer or CI runs. `make test` does its own set-up on a bare machine with Go.
GO ?= go

GOFUMPT     := mvdan.cc/gofumpt@v0.12.0
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2

SOAK_JOBS ?= 20000

.PHONY: help test soak bench bench-short lint generate quickstart

help: ## show the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

test: ## set up, lint, and test against the embedded and a real server
	@GO='$(GO)' GOFUMPT='$(GOFUMPT)' STATICCHECK='$(STATICCHECK)' ./.ci/test

soak: ## the long forms of the crash and restart tests; SOAK_JOBS=20000
	SMALLAGE_SOAK=$(SOAK_JOBS) $(GO) test -count=1 -timeout 2h -v -run 'NoJobIsLost|RestartsOf' ./internal/crashtest

bench: ## measure beside Redis itself and other queues, about half an hour; writes bench/RESULTS.md and the tables in docs
	cd bench && $(GO) run . -out RESULTS.md -docs ../docs/performance.md,../README.md

bench-short: ## the same in under five minutes, without writing
	cd bench && $(GO) run . -short

lint: ## vet, gofumpt, staticcheck and generated files
	@GO='$(GO)' GOFUMPT='$(GOFUMPT)' STATICCHECK='$(STATICCHECK)' ./.ci/lint

generate: ## write the generated files anew
	$(GO) generate ./...

quickstart: ## run the first example
	$(GO) run ./examples/quickstart
