// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"

	"github.com/quorate/quorate/ddata/durable"
	"github.com/quorate/quorate/ddata/store"
)

// The commands for data. Those in this file work on the directory of a node that does not run: each calls the
// function of the same name of the store and prints what it has found. How far a
// command has come is shown where a terminal is.

// Data is the command for replicated data: of a directory, or of a running node.
type Data struct {
	Check  CheckData  `cmd:"" help:"Read all durable data of a node, and look for damage."`
	Export ExportData `cmd:"" help:"Write all durable data that can be read as lines of JSON."`
	Repair RepairData `cmd:"" help:"Make damaged data usable again, with what can be read."`

	Groups     GroupsOfData   `cmd:"" help:"Ask a node for its groups of keys, and how they stand."`
	Keys       KeysOfData     `cmd:"" help:"Ask a node for the names of keys."`
	Get        GetData        `cmd:"" help:"Ask a node for the value of a key."`
	Why        WhyData        `cmd:"" help:"Ask a node where a key lives, and why it is as it is."`
	AcceptLoss AcceptDataLoss `cmd:"" help:"Have a group of keys go on although replicas are gone for good."`
}

// CheckData is the command that looks for damage.
type CheckData struct {
	Dir string `arg:"" help:"Directory of the durable data."`
}

// ExportData is the command that takes the data out.
type ExportData struct {
	Path string `arg:"" help:"Directory of the durable data, or a file in it that was put aside."`
	To   string `default:"-" placeholder:"FILE" help:"Write to this new file, - for the standard output."`
}

// RepairData is the command that makes damaged data usable.
type RepairData struct {
	Dir string `arg:"" help:"Directory of the durable data."`
}

// Help is the text after the one-line help.
func (*CheckData) Help() string {
	return `Reads every byte of the durable data of a node that does not run, and changes
nothing. Prints whose data it is, its groups and files, the first fault and what to
do about it, and everything that cannot be read. The exit status is 1 if there is a
fault.

Examples:
  quorate data check /var/lib/bank/data
  quorate --json data check /var/lib/bank/data | jq .keys`
}

// Help is the text after the one-line help.
func (*ExportData) Help() string {
	return `Writes a line of JSON for each key that can be read: its group, the key, and the
value in base64; before the keys of a group a line with its meta. Names that are no
UTF-8 are in base64 too, as group_base64 and key_base64. The values are as the
replicator has encoded them. Nothing is changed. The exit status is 1 if something
cannot be read; what that is goes to the standard error output.

A file that was put aside, aside-N, is exported by its name: quorate data groups
lists those of a running node. A node puts its copy aside when it comes back with a
disk that is older than the others remember.

Examples:
  quorate data export /var/lib/bank/data > all.jsonl
  quorate data export -to all.jsonl /var/lib/bank/data
  quorate data export /var/lib/bank/data/aside-7 | jq -r .key`
}

// Help is the text after the one-line help.
func (*RepairData) Help() string {
	return `Writes everything that can be read into a new file, and gives the old files names
that end with .damaged: nothing is destroyed, and there must be room for both. Prints
what was lost. Data without a fault stays as it is. It can be ended at any moment
and run again.

The disk gets a new ID: the node comes back as another replica, and copies what it
lacks from the others. Where others have the data it is as good to move the directory
away. A key that was dropped may be back, if the record of that is lost.

Examples:
  quorate data check /var/lib/bank/data
  quorate data repair /var/lib/bank/data`
}

// lossesShown is how many things that cannot be read are listed for people.
const lossesShown = 10

// Run checks the data.
func (c *CheckData) Run(s *Session) error {
	progress, done := s.keys("read")
	r, err := durable.Check(context.Background(), c.Dir, progress)
	done()
	if err != nil {
		return dataError(err)
	}
	if s.JSON {
		err = s.PrintJSON(r)
	} else {
		err = writeReport(s, r)
	}
	if err == nil && r.Fault != "" {
		err = errors.New("the data is damaged")
	}
	return err
}

// Run exports the data.
func (c *ExportData) Run(s *Session) (err error) {
	out := s.Stdout
	if c.To == "-" && s.JSON {
		return RejectedError{Text: "--json and an export both want the standard output: write the export to a file, with -to"}
	}
	if c.To != "-" {
		file, err := os.OpenFile(c.To, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return RejectedError{Text: err.Error()}
		}
		out = file
		defer func() { err = errors.Join(err, file.Sync(), file.Close()) }()
	}
	progress, done := s.keys("written")
	r, err := durable.Export(context.Background(), c.Path, out, progress)
	done()
	if err != nil {
		return dataError(err)
	}
	switch {
	case s.JSON:
		err = s.PrintJSON(r)
	case c.To != "-":
		field(s.Stdout, "written", plural(int(r.Keys), "key")+" to "+c.To)
	}
	writeLosses(s.Stderr, r.Lost)
	if err == nil && len(r.Lost) > 0 {
		err = errors.New("not everything can be read")
	}
	return err
}

// Run repairs the data.
func (c *RepairData) Run(s *Session) error {
	progress, done := s.keys("read or written")
	r, err := durable.Repair(context.Background(), c.Dir, progress)
	done()
	if err != nil {
		return dataError(err)
	}
	if s.JSON {
		return s.PrintJSON(r)
	}
	if !r.Damaged {
		field(s.Stdout, "directory", r.Report.Dir)
		fmt.Fprintln(s.Stdout, s.Paint(32, "ok")+", there is nothing to repair")
		return nil
	}
	if err := writeReport(s, r.Report); err != nil {
		return err
	}
	fmt.Fprintln(s.Stdout)
	field(s.Stdout, "former id", r.FormerID)
	for _, name := range r.Aside {
		field(s.Stdout, "put aside", name)
	}
	writeLosses(s.Stdout, r.Lost)
	field(s.Stdout, "next", "start the node; it is a new replica and copies what it lacks from the others; then delete the files that end with .damaged")
	return nil
}

// keys returns a function that shows how many keys were seen, nil without a terminal, and
// one that clears the line of it.
func (s *Session) keys(what string) (progress func(int64), done func()) {
	if !terminal(s.Stderr) {
		return nil, func() {}
	}
	return func(keys int64) { fmt.Fprintf(s.Stderr, "%s%d keys %s", clearLine, keys, what) },
		func() { fmt.Fprint(s.Stderr, clearLine) }
}

// dataError says that the arguments are wrong if they name no data.
func dataError(err error) error {
	fault := new(store.Error)
	if errors.Is(err, durable.ErrNoStore) || errors.Is(err, fs.ErrNotExist) || errors.As(err, &fault) && fault.Kind == nil && fault.Cause == nil {
		return RejectedError{Text: err.Error()}
	}
	return err
}

// writeReport writes what a check has found.
func writeReport(s *Session, r *durable.Report) error {
	w := bufio.NewWriter(s.Stdout)
	field(w, "directory", r.Dir)
	field(w, "cluster", r.Cluster)
	field(w, "id", r.ID)
	if r.ID != "" {
		field(w, "starts", strconv.FormatUint(r.Starts, 10))
	}
	field(w, "keys", fmt.Sprintf("%d in %s, %d bytes", r.Keys, plural(len(r.Groups), "group"), r.Bytes))
	for _, g := range r.Groups {
		field(w, "group", fmt.Sprintf("%q: %s, %d bytes, meta %d bytes", g.Name, plural(int(g.Keys), "key"), g.Bytes, g.Meta))
	}
	for _, f := range r.Files {
		text := fmt.Sprintf("%s, %d bytes", f.Name, f.Bytes)
		if !f.Loaded {
			text += ", not loaded"
		}
		field(w, "file", text)
	}
	if r.Fault == "" {
		fmt.Fprintln(w, s.Paint(32, "ok"))
		return w.Flush()
	}
	fmt.Fprintln(w)
	field(w, "fault", r.Fault)
	field(w, "remedy", r.Remedy)
	writeLosses(w, r.Lost)
	return w.Flush()
}

// writeLosses lists what cannot be read.
func writeLosses(w io.Writer, lost []durable.Loss) {
	for i, l := range lost {
		if i == lossesShown {
			field(w, "", fmt.Sprintf("and %d more, all of them with --json", len(lost)-i))
			return
		}
		text := l.File
		if l.Bytes > 0 {
			text += fmt.Sprintf(", %d bytes at byte %d", l.Bytes, l.At)
		}
		field(w, "unreadable", text+": "+l.Fault)
	}
}
