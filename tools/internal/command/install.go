// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/quorate/quorate/plugins"
)

// Nothing is fetched before it is known that the file can take the plugin ([Install.target]). The executable is copied
// to a name of its own beside its place, and gets the place when it is whole ([Install.copy]); then the file is
// replaced in one step, with a section that pin would call pinned ([withPlugin]).

// Install is the command that adds a plugin to a file.
type Install struct {
	Source       string `arg:"" help:"Executable of the plugin, a path or an https URL."`
	File         string `arg:"" help:"Configuration file, YAML."`
	Name         string `placeholder:"NAME" help:"Name of the plugin in the file; by default that of the executable."`
	Policy       string `placeholder:"POLICY" help:"What it decides; by default the plugin is asked."`
	SHA256       string `name:"sha256" placeholder:"SUM" help:"Checksum that the executable must have."`
	Dir          string `default:"plugins" placeholder:"DIR" help:"Directory for the executable, relative to the file; plugins."`
	InsecureHTTP bool   `name:"insecure-http" help:"Permit http to another machine."`
}

// Help is the text after the one-line help.
func (*Install) Help() string {
	return `Copies the executable into a directory beside the file, and writes the section of
the plugin into the file, with the checksum of what was copied: a node starts
nothing else. Everything else in the file stays as it is. A plugin that the file
has, and another executable at the place, are not replaced; after an error
nothing has changed. The plugin is chosen by a setting such as downing.strategy.

Look at what you install: it decides for the cluster. With --sha256 it is what
whoever gave you the checksum has looked at. At most 512 MiB are copied. Without
--policy the plugin is started, as quorate plugin check does, and asked.

Examples:
  quorate plugin install build/witness cluster.yaml
  quorate plugin install https://example.com/zones cluster.yaml \
      --sha256 ddc7a535405aba50fa5b329b12e9eabf1e605d5d20e09eda87ab927e263ac966
  quorate --json plugin install build/witness cluster.yaml --policy downing`
}

const (
	// maxPluginBytes bounds an executable, and fetchTimeout how long it may take to fetch it.
	maxPluginBytes = 512 << 20
	fetchTimeout   = 10 * time.Minute
	// maxRedirects is how often a server may name another place.
	maxRedirects = 5
)

// installed is a plugin that was added, and the JSON form of the output.
type installed struct {
	Plugin string `json:"plugin"`
	Policy string `json:"policy"`
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
}

// Run installs the plugin.
func (i *Install) Run(s *Session) error {
	text, done, err := i.target()
	if err != nil {
		return RejectedError{err.Error()}
	}
	dir := i.Dir
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(filepath.Dir(i.File), dir)
	}
	_, absent := os.Stat(dir)
	if err := i.install(s, text, dir, &done); err != nil {
		if absent != nil {
			_ = os.Remove(dir) // It may not have been made.
		}
		return err
	}
	if s.JSON {
		return s.PrintJSON(done)
	}
	field(s.Stdout, "name", done.Plugin)
	field(s.Stdout, "policy", done.Policy)
	field(s.Stdout, "path", done.Path)
	field(s.Stdout, "sha256", done.SHA256)
	return nil
}

// install copies the executable and writes the section.
func (i *Install) install(s *Session, text, dir string, done *installed) error {
	ctx, cancel := context.WithTimeout(context.Background(), fetchTimeout)
	defer cancel()
	place, fresh, err := i.copy(ctx, dir, done)
	if err != nil {
		return err
	}
	err = i.write(s, text, place, done)
	if err != nil && fresh {
		err = errors.Join(err, os.Remove(place))
	}
	return err
}

// target returns the text of the file, and what is to be installed, once the file can take it.
func (i *Install) target() (text string, done installed, err error) {
	done = installed{Plugin: i.Name, Policy: i.Policy}
	if done.Plugin == "" {
		base := filepath.Base(i.Source)
		if u, err := url.Parse(i.Source); err == nil && u.Host != "" {
			base = filepath.Base(u.Path)
		}
		done.Plugin = strings.TrimSuffix(base, filepath.Ext(base))
	}
	if ok, err := regexp.MatchString(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`, done.Plugin); !ok || err != nil {
		return "", done, fmt.Errorf("%q is no name of a plugin: give one with --name, of lower-case words joined by hyphens", printable(done.Plugin))
	}
	if i.Policy != "" && !slices.Contains(plugins.Policies(), plugins.Policy(i.Policy)) {
		return "", done, fmt.Errorf("--policy %q is none of %v", printable(i.Policy), plugins.Policies())
	}
	if i.SHA256 != "" {
		if sum, err := hex.DecodeString(i.SHA256); err != nil || len(sum) != sha256.Size {
			return "", done, errors.New("--sha256 is no checksum of 64 hexadecimal digits")
		}
	}
	read, err := os.ReadFile(i.File)
	if err != nil {
		return "", done, err
	}
	done.Path = filepath.ToSlash(filepath.Join(i.Dir, done.Plugin))
	sample := done
	sample.SHA256, sample.Policy = strings.Repeat("0", 2*sha256.Size), string(plugins.Downing)
	if _, err := withPlugin(i.File, string(read), sample); err != nil {
		return "", done, fmt.Errorf("%s: %w", i.File, err)
	}
	return string(read), done, nil
}

// copy puts the executable into its place, and notes its checksum. It is fresh if nothing was there.
func (i *Install) copy(ctx context.Context, dir string, done *installed) (place string, fresh bool, err error) {
	place = filepath.Join(dir, done.Plugin)
	source, err := i.open(ctx)
	if err != nil {
		return "", false, err
	}
	defer func() { _ = source.Close() }() // It was only read.
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", false, err
	}
	part, err := os.CreateTemp(dir, ".install-*")
	if err != nil {
		return "", false, err
	}
	defer func() { _ = os.Remove(part.Name()) }() // What has its place has another name too.
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(part, sum), io.LimitReader(source, maxPluginBytes+1))
	err = errors.Join(err, part.Chmod(0o755), part.Sync(), part.Close())
	done.SHA256 = hex.EncodeToString(sum.Sum(nil))
	switch {
	case err != nil:
		return "", false, err
	case n == 0 || n > maxPluginBytes:
		return "", false, fmt.Errorf("%s has %d bytes or more: an executable has 1 to %d", i.Source, n, maxPluginBytes)
	case i.SHA256 != "" && !strings.EqualFold(i.SHA256, done.SHA256):
		return "", false, fmt.Errorf("the checksum of %s is %s, not that of --sha256: nothing was installed", i.Source, done.SHA256)
	}
	if err = os.Link(part.Name(), place); errors.Is(err, os.ErrExist) { // It takes the place of nothing.
		if there, err := checksum(place); err != nil || there != done.SHA256 {
			return "", false, fmt.Errorf("%s is there, and is another file: give another --name or --dir, or remove it", place)
		}
		return place, false, nil
	}
	return place, err == nil, err
}

// open opens the source.
func (i *Install) open(ctx context.Context) (io.ReadCloser, error) {
	u, err := url.Parse(i.Source)
	if err != nil || u.Host == "" {
		file, err := os.Open(i.Source)
		if err != nil {
			return nil, err
		}
		if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
			return nil, errors.Join(err, file.Close(), fmt.Errorf("%s is no regular file", i.Source))
		}
		return file, nil
	}
	if err := i.permits(u); err != nil {
		return nil, RejectedError{err.Error()}
	}
	client := http.Client{CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if len(via) > maxRedirects {
			return fmt.Errorf("there are more than %d redirects", maxRedirects)
		}
		return i.permits(r.URL)
	}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, i.Source, nil)
	if err != nil {
		return nil, err
	}
	answer, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK || answer.ContentLength > maxPluginBytes {
		return nil, errors.Join(answer.Body.Close(), fmt.Errorf("%s answers %s with %d bytes: no executable of up to %d", i.Source, answer.Status, answer.ContentLength, maxPluginBytes))
	}
	return answer.Body, nil
}

// permits refuses what others on the way could change.
func (i *Install) permits(u *url.URL) error {
	ip, err := netip.ParseAddr(u.Hostname())
	loopback := err == nil && ip.IsLoopback() || u.Hostname() == "localhost"
	if u.Scheme == "https" || u.Scheme == "http" && (loopback || i.InsecureHTTP) {
		return nil
	}
	return fmt.Errorf("%s://%s: whoever is on the way could give another executable: use https, or --insecure-http", u.Scheme, printable(u.Host))
}

// write asks the plugin for its policy, unless it is given, and writes the section.
func (i *Install) write(s *Session, text, place string, done *installed) error {
	if done.Policy == "" {
		absolute, err := filepath.Abs(place)
		if err != nil {
			return err
		}
		cfg := plugins.Default()
		// Describe holds the plugin to no policy.
		cfg.Path, cfg.SHA256, cfg.Policy = absolute, plugins.Checksums{done.SHA256}, plugins.Downing
		d, err := declared(s.Stderr, done.Plugin, cfg)
		if err == nil && d.Manifest.Policy == "" {
			err = errors.New("the plugin does not say what it decides: give --policy")
		}
		if err != nil {
			return err
		}
		done.Policy = string(d.Manifest.Policy)
	}
	changed, err := withPlugin(i.File, text, *done)
	if err != nil {
		return err
	}
	return replaceFile(i.File, changed)
}

// withPlugin returns the text of a file with the section of one more plugin. What has another form than expected, such
// as a file in one line, is left alone.
func withPlugin(path, text string, p installed) (string, error) {
	if ext := filepath.Ext(path); ext == ".json" || ext == ".toml" {
		return "", errors.New("plugins are written into YAML files only")
	}
	before, had, err := withoutPlugin(text, p.Plugin)
	if err != nil {
		return "", err
	}
	if had != nil {
		return "", fmt.Errorf("plugins.%s is there: choose another --name, or change it and say quorate plugin pin", p.Plugin)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		return "", err
	}
	end := "\n"
	if strings.Contains(text, "\r\n") {
		end = "\r\n"
	}
	changed := strings.Join(insertion(text, &doc, p), end)
	after, added, err := withoutPlugin(changed, p.Plugin)
	if err != nil || added == nil || !reflect.DeepEqual(before, after) {
		return "", errors.New("the section cannot be added to a file of this form: write it by hand")
	}
	for key, want := range map[string]string{"policy": p.Policy, "path": p.Path, "sha256": p.SHA256} {
		if got := valueOf(added, key); got == nil || got.Value != want {
			return "", errors.New("the section cannot be added to a file of this form: write it by hand")
		}
	}
	return changed, nil
}

// withoutPlugin returns what a file has beside a plugin, and the section of the plugin; nil if it is not there.
func withoutPlugin(text, name string) (rest map[string]any, section *yaml.Node, err error) {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		return nil, nil, err
	}
	rest = map[string]any{}
	if len(doc.Content) == 0 {
		return rest, nil, nil
	}
	if err := doc.Decode(&rest); err != nil {
		return nil, nil, err
	}
	if all := valueOf(doc.Content[0], "plugins"); all != nil {
		section = valueOf(all, name)
	}
	all, _ := rest["plugins"].(map[string]any)
	if delete(all, name); len(all) == 0 {
		delete(rest, "plugins")
	}
	return rest, section, nil
}

// insertion returns the lines of a text with the section, first among the plugins, or at the end.
func insertion(text string, doc *yaml.Node, p installed) []string {
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	section := func(indent string) []string {
		return []string{indent + p.Plugin + ":", indent + "  policy: " + p.Policy, indent + "  path: " + p.Path, indent + "  sha256: " + p.SHA256}
	}
	var key, value *yaml.Node
	if len(doc.Content) > 0 {
		key, value = keyOf(doc.Content[0], "plugins"), valueOf(doc.Content[0], "plugins")
	}
	if key == nil {
		if len(lines) > 0 && lines[len(lines)-1] == "" {
			lines = lines[:len(lines)-1]
		}
		return slices.Concat(lines, []string{"plugins:"}, section("  "), []string{""})
	}
	indent := strings.Repeat(" ", key.Column+1)
	if value.Kind == yaml.MappingNode && len(value.Content) > 0 {
		indent = strings.Repeat(" ", value.Content[0].Column-1)
	}
	if value.Kind == yaml.MappingNode && len(value.Content) == 0 && value.Style&yaml.FlowStyle != 0 {
		lines[key.Line-1] = strings.Replace(lines[key.Line-1], "{}", "", 1)
	}
	return slices.Insert(lines, key.Line, section(indent)...)
}
