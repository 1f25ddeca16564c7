// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Command release makes a release in a clone of the repository: its commits and
// tags, checked as a user would fetch them. It publishes nothing and changes nothing
// in the repository that it is given; it prints the command that pushes.
//
//	release -version v0.3.0 -out .tmp/release/v0.3.0
//	release -version v0.0.1-draft.1 -out /tmp/draft -draft
//
// With -draft the work tree is taken as it stands, committed or not, and the checks that
// forbid a release are skipped. DIR/proxy then serves as GOPROXY: the consumer's view of
// work in progress.
//
//	GOWORK=off GOPROXY=file:///tmp/draft/proxy,https://proxy.golang.org \
//	  GONOSUMDB='github.com/quorate/*' go get github.com/quorate/quorate/fd@v0.0.1-draft.1
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/quorate/quorate/tools/internal/api"
	"github.com/quorate/quorate/tools/internal/release"
)

func main() {
	repo := flag.String("repo", ".", "the repository's root directory")
	version := flag.String("version", "", "the version of all modules, such as v0.3.0")
	out := flag.String("out", "", "a new directory for the clone and the proxy")
	branch := flag.String("branch", "main", "the branch that gets the changelogs and the requirements")
	draft := flag.Bool("draft", false, "release the work tree as it stands, without checks, for a look at it")
	flag.Parse()
	if *version == "" || *out == "" || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(context.Background(), *repo, *version, *out, *branch, *draft); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, repo, version, out, branch string, draft bool) error {
	repo, err := filepath.Abs(repo)
	if err != nil {
		return err
	}
	if out, err = filepath.Abs(out); err != nil {
		return err
	}
	if !draft {
		if err := check(ctx, repo, version); err != nil {
			return err
		}
	}
	plan := release.Plan{
		Repo: repo, Version: version, Clone: filepath.Join(out, "clone"), Day: time.Now(),
		Without: release.Unreleased(), Draft: draft,
	}
	r, err := release.Cut(ctx, plan)
	if err != nil {
		return err
	}
	proxy, err := release.NewProxy(out)
	if err != nil {
		return err
	}
	if err := r.Verify(ctx, proxy); err != nil {
		return err
	}
	fmt.Printf("%d modules at %s, in %s\n", len(r.Tags), version, r.Clone)
	if !draft {
		fmt.Printf("Look at it (git -C %s show HEAD~1, show HEAD), then publish it:\n\n  %s\n", r.Clone, r.Push(remote(ctx, repo), branch))
	}
	return nil
}

// check runs all checks that may forbid a release.
func check(ctx context.Context, repo, version string) error {
	tree, err := release.Load(repo, release.Unreleased())
	if err != nil {
		return err
	}
	return errors.Join(tree.Check(ctx, version), api.Check(ctx, repo))
}

// remote returns where the repository came from, or the repository itself.
func remote(ctx context.Context, repo string) string {
	said, err := exec.CommandContext(ctx, "git", "-C", repo, "remote", "get-url", "--push", "origin").Output()
	if err != nil {
		return repo
	}
	return strings.TrimSpace(string(said))
}
