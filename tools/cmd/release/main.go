// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Command release makes a release in a clone of the repository: its commits and
// tags, checked as a user would fetch them. A module gets a version if it has changed since its last one. Nothing is
// published, and nothing changes in the repository that it is given; it prints the command that pushes.
//
//	release -dry-run
//	release -out .tmp/release/1
//	release -versions -module fd
//	release -draft v0.0.1-draft.1 -out /tmp/draft
//
// With -draft the work tree is taken as it stands, committed or not, all modules get the one version, and the checks
// that forbid a release are skipped. DIR/proxy then serves as GOPROXY: the consumer's view of
// work in progress.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/tools/internal/api"
	"github.com/quorate/quorate/tools/internal/release"
)

// options are what the command line says.
type options struct {
	repo, out, branch, draft, module string
	dryRun, versions                 bool
}

func main() {
	var o options
	flag.StringVar(&o.repo, "repo", ".", "the repository's root directory")
	flag.StringVar(&o.out, "out", "", "a new directory for the clone and the proxy")
	flag.StringVar(&o.branch, "branch", "main", "the branch that gets the changelogs and the requirements")
	flag.StringVar(&o.draft, "draft", "", "release the work tree as it stands under this version, without checks, for a look at it")
	flag.BoolVar(&o.dryRun, "dry-run", false, "only say which modules would get which versions, and why")
	flag.BoolVar(&o.versions, "versions", false, "check that the requirements of siblings are the lowest that work")
	flag.StringVar(&o.module, "module", "", "with -versions, the directory of the one module to check")
	flag.Parse()
	if flag.NArg() > 0 || o.out == "" && !o.dryRun && !o.versions {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(context.Background(), o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) (err error) {
	if o.repo, err = filepath.Abs(o.repo); err != nil {
		return err
	}
	tree, err := release.Load(o.repo, release.Unreleased())
	if err != nil {
		return err
	}
	switch {
	case o.versions:
		return versions(ctx, tree, o)
	case o.dryRun:
		all, err := tree.Check(ctx)
		show(all)
		return err
	default:
		return cut(ctx, tree, o)
	}
}

// versions says of each module whether its requirements of siblings are the lowest that work.
func versions(ctx context.Context, tree *release.Tree, o options) error {
	scratch := filepath.Join(o.repo, ".tmp", "versions")
	if err := os.MkdirAll(scratch, 0o755); err != nil {
		return err
	}
	next, _ := tree.NextVersions(ctx) // Each module has its own fault.
	if next == nil {
		return errors.New("release: the tags cannot be read")
	}
	var faults []error
	for i, n := range next {
		if o.module != "" && n.Module.Dir != o.module {
			continue
		}
		fmt.Printf("[%d/%d] %s %s\n", i+1, len(next), n.Module.Dir, n.Last)
		faults = append(faults, n.Fault, tree.Against(ctx, n.Module, scratch))
	}
	return errors.Join(faults...)
}

// show prints what becomes of each module.
func show(all []*release.NextVersion) {
	released := 0
	for _, n := range all {
		if !n.Released() {
			fmt.Printf("%-28s %-9s\n", n.Module.Dir, n.Last)
			continue
		}
		released++
		fmt.Printf("%-28s %-9s %s: %s\n", n.Module.Dir, n.Version, n.Step, n.Reason)
	}
	fmt.Printf("%d of %d modules get a version\n", released, len(all))
}

func cut(ctx context.Context, tree *release.Tree, o options) error {
	out, err := filepath.Abs(o.out)
	if err != nil {
		return err
	}
	if o.draft == "" {
		all, err := tree.Check(ctx)
		show(all)
		if err := errors.Join(err, api.Check(ctx, o.repo)); err != nil {
			return err
		}
		if !slices.ContainsFunc(all, (*release.NextVersion).Released) {
			return nil
		}
	}
	r, err := release.Cut(ctx, release.Plan{
		Repo: o.repo, Clone: filepath.Join(out, "clone"), Day: time.Now(), Without: release.Unreleased(), Draft: o.draft,
		Progress: func(line string) { fmt.Println(line) },
	})
	if err != nil {
		return err
	}
	proxy, err := release.NewProxy(out)
	if err != nil {
		return err
	}
	fmt.Println("packing each module from its tag, as the go command would")
	if err := r.Verify(ctx, proxy); err != nil {
		return err
	}
	fmt.Printf("%d tags in %s\n", len(r.Tags), r.Clone)
	return advise(ctx, r, proxy, o)
}

// advise says what to type next.
func advise(ctx context.Context, r *release.Release, proxy *release.Proxy, o options) error {
	env, err := proxy.Env(ctx, r.Tree.Prefix())
	if err != nil {
		return err
	}
	last := r.Tags[len(r.Tags)-1]
	at := strings.LastIndex(last, "/")
	packages := r.Tree.Prefix() + "/" + last[:at] + "/..."
	fmt.Printf("\nTry it in a directory outside of the repository:\n\n  export %s\n  go mod init example.test/trial && go get %s@%s && go build %s\n",
		strings.Join(quoted(env), " \\\n    "), packages, last[at+1:], packages)
	if o.draft == "" {
		fmt.Printf("\nLook at it (git -C %s show HEAD~1, show HEAD), then publish it:\n\n  %s\n", r.Clone, r.Push(remote(ctx, o.repo), o.branch))
	}
	return nil
}

// quoted quotes the values of variables for a shell.
func quoted(env []string) (all []string) {
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		all = append(all, name+"='"+value+"'")
	}
	return all
}

// remote returns where the repository came from, or the repository itself.
func remote(ctx context.Context, repo string) string {
	said, err := exec.CommandContext(ctx, "git", "-C", repo, "remote", "get-url", "--push", "origin").Output()
	if err != nil {
		return repo
	}
	return strings.TrimSpace(string(said))
}
