// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// Completion: a script for a shell ([Completion.Run]) has the shell run the program with the words of the line
// so far, behind [completing], and the program answers with what may stand there ([candidates]).
// Nothing is asked of a node.

// completing is the first argument by which a script asks for the words that may come next.
const completing = "__complete"

// Completion is the command that prints a script for a shell.
type Completion struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"The shell: bash, zsh or fish."`
}

// Help is the text after the one-line help.
func (*Completion) Help() string {
	return `Prints a script by which a shell completes commands and flags of quorate.

Examples:
  source <(quorate completion bash)
  quorate completion zsh > "${fpath[1]}/_quorate"
  quorate completion fish > ~/.config/fish/completions/quorate.fish`
}

// HelpOf is the command that says how another one is used. The program answers it.
type HelpOf struct {
	Command []string `arg:"" optional:"" help:"The command."`
}

// Help is the text after the one-line help.
func (*HelpOf) Help() string {
	return `Prints how a command is used, like -h behind it; without one, which commands there are.

Examples:
  quorate help
  quorate help why
  quorate help plugin new`
}

// The scripts. Where the program has no word, bash and zsh go on with names of files, and so does fish.
const (
	bashScript = `# bash completion of quorate
_quorate() {
    local IFS=$'\n'
    COMPREPLY=($("${COMP_WORDS[0]}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _quorate quorate
`
	zshScript = `#compdef quorate
# zsh completion of quorate
_quorate() {
    local -a found
    found=("${(@f)$("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    if [[ -n "${found[1]}" ]]; then
        compadd -- "${found[@]}"
    else
        _files
    fi
}
if [[ "${funcstack[1]}" == _quorate ]]; then
    _quorate "$@"
else
    compdef _quorate quorate
fi
`
	fishScript = `# fish completion of quorate
complete -c quorate -a '(set -l line (commandline -opc); set -l now (commandline -ct); quorate __complete $line[2..] "$now" 2>/dev/null)'
`
)

// Run prints the script.
func (c *Completion) Run(s *Session) error {
	_, err := fmt.Fprint(s.Stdout, map[string]string{"bash": bashScript, "zsh": zshScript, "fish": fishScript}[c.Shell])
	return err
}

// candidates returns the words that may stand in the place of the last one, sorted: names of commands, flags
// if it begins with a hyphen, and values of a flag or an argument that has a fixed set of them.
func candidates(root *kong.Node, words []string) []string {
	if len(words) == 0 {
		words = []string{""}
	}
	last, at, value := words[len(words)-1], root, (*kong.Value)(nil)
	flags := slices.Clone(root.Flags)
	arguments := 0
	for _, word := range words[:len(words)-1] {
		if value != nil { // It is the value of the flag before.
			value = nil
			continue
		}
		if strings.HasPrefix(word, "-") {
			value = awaited(flags, word)
			continue
		}
		if i := slices.IndexFunc(at.Children, func(n *kong.Node) bool { return n.Name == word }); i >= 0 {
			at = at.Children[i]
			flags = append(flags, at.Flags...)
			continue
		}
		arguments++
	}
	var found []string
	switch {
	case value != nil:
		found = value.EnumSlice()
	case strings.HasPrefix(last, "-"):
		for _, f := range flags {
			if !f.Hidden {
				found = append(found, "--"+f.Name)
			}
		}
		if !strings.HasPrefix(last, "--") && len(last) > 1 { // Long flags may have one hyphen.
			last = "-" + last
		}
	default:
		for _, n := range at.Children {
			if !n.Hidden {
				found = append(found, n.Name)
			}
		}
		if arguments < len(at.Positional) {
			found = append(found, at.Positional[arguments].EnumSlice()...)
		}
	}
	found = slices.DeleteFunc(found, func(w string) bool { return w == "" || !strings.HasPrefix(w, last) })
	slices.Sort(found)
	return slices.Compact(found)
}

// awaited returns the value that a flag waits for in the next word, nil if it needs none.
func awaited(flags []*kong.Flag, word string) *kong.Value {
	name := strings.TrimLeft(word, "-")
	i := slices.IndexFunc(flags, func(f *kong.Flag) bool { return f.Name == name || len(name) == 1 && string(f.Short) == name })
	if i < 0 || flags[i].IsBool() {
		return nil
	}
	return flags[i].Value
}
