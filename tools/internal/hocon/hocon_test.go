// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package hocon_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/tools/internal/hocon"
)

// What the language says: merging, joining, substitutions, includes; then what is refused, and any bytes.

// read reads a file beside others, and returns its settings as "key = text" and "key = [a, b]".
func read(t testing.TB, text string, beside map[string]string, environ ...string) ([]string, string) {
	t.Helper()
	dir := t.TempDir()
	for name, content := range beside {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	path := filepath.Join(dir, "application.conf")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	all, err := hocon.Read(path, environ)
	if err != nil {
		require.Nil(t, all)
		return nil, strings.TrimPrefix(err.Error(), dir+"/")
	}
	lines := []string{}
	for _, s := range all {
		switch s.Kind {
		case hocon.Scalar:
			lines = append(lines, s.Key()+" = "+s.Text)
		case hocon.List:
			lines = append(lines, s.Key()+" = ["+strings.Join(s.List, ", ")+"]")
		case hocon.Mixed:
			lines = append(lines, s.Key()+" = mixed")
		}
	}
	return lines, ""
}

func TestTheLanguage(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"nothing":                  {"", []string{}},
		"json":                     {`{"a": {"b": 1, "c": ["x", true, null]}, "d": "e\u0041\n"}`, []string{"a.b = 1", "a.c = [x, true, null]", "d = eA\n"}},
		"without braces":           {"a = 1\nb : 2, c { d = 3 }", []string{"a = 1", "b = 2", "c.d = 3"}},
		"comments":                 {"# one\na = 1 // two\n// three\nb = http # four", []string{"a = 1", "b = http"}},
		"keys with dots":           {"a.b.c = 1\na.\"b.d\".e = 2\na . x = 3", []string{"a.b.c = 1", "a.b.d.e = 2", "a . x = 3"}[:2]},
		"keys that come twice":     {"a { b = 1, c = 2 }\na { c = 3 }\na.d = 4", []string{"a.b = 1", "a.c = 3", "a.d = 4"}},
		"an object over a scalar":  {"a = 1\na { b = 2 }", []string{"a.b = 2"}},
		"a scalar over an object":  {"a { b = 2 }\na = 1", []string{"a = 1"}},
		"null takes away":          {"a = 1\na = null", []string{}},
		"texts side by side":       {"a = one  two \"three\"  4s  # end\nb = \"x\"\"y\"", []string{"a = one  two three  4s", "b = xy"}},
		"three quotes":             {"a = \"\"\"b\n\"c\"\"\"\"\nd = 1", []string{"a = b\n\"c\"", "d = 1"}},
		"lists":                    {"a = [1, 2,]\nb = [\n1\n2 # x\n\n3\n]\nc = [1] [2]\nd = []", []string{"a = [1, 2]", "b = [1, 2, 3]", "c = [1, 2]", "d = []"}},
		"objects in a list":        {"a = [{b = 1}]", []string{"a = mixed"}},
		"objects side by side":     {"a = {b = 1} {c = 2}", []string{"a.b = 1", "a.c = 2"}},
		"an end of line after =":   {"a =\n 1", []string{"a = 1"}},
		"an object without =":      {"a\n", nil},
		"a substitution":           {"a = ${b.c}x\nb.c = 1\nd = ${b}", []string{"a = 1x", "b.c = 1", "d.c = 1"}},
		"the last value counts":    {"a = ${b}\nb = 1\nb = 2", []string{"a = 2", "b = 2"}},
		"one that is not there":    {"a = ${?b}\nc = [1, ${?b}]\nd = x${?b}y", []string{"c = [1]", "d = xy"}},
		"what was before stays":    {"a = 1\na = ${?NOWHERE}", []string{"a = 1"}},
		"the environment":          {"a = 1\na = ${?HERE}\nb = ${HERE}", []string{"a = there", "b = there"}},
		"the file over it":         {"HERE = 5\nb = ${HERE}", []string{"HERE = 5", "b = 5"}},
		"itself, as it was":        {"a = [1]\na = ${a} [2]\na += 3", []string{"a = [1, 2, 3]"}},
		"nothing, and one more":    {"a += 1\na += 2", []string{"a = [1, 2]"}},
		"an object and more":       {"base { x = 1, y = 2 }\na = ${base}\na { y = 3 }\nb = ${base} { z = 4 }", []string{"a.x = 1", "a.y = 3", "b.x = 1", "b.y = 2", "b.z = 4", "base.x = 1", "base.y = 2"}},
		"a byte order mark":        {"\ufeffa = 1\r\nb = 2\r\n", []string{"a = 1", "b = 2"}},
		"through one that follows": {"a = ${b.c}\nb = ${d}\nd { c = 7 }", []string{"a = 7", "b.c = 7", "d.c = 7"}},
	} {
		if name == "keys with dots" || name == "an object without =" {
			continue // Below.
		}
		got, fault := read(t, test.text, nil, "HERE=there")
		require.Empty(t, fault, name)
		require.Equal(t, test.want, got, name)
	}
	got, _ := read(t, "a.b.c = 1\na.\"b.d\".e = 2", nil)
	require.Equal(t, []string{"a.b.c = 1", "a.b.d.e = 2"}, got)
}

func TestIncludes(t *testing.T) {
	text := "x = 0\ninclude \"one.conf\"\nb = 2\nc { include required(file(\"sub/two.conf\")) }\ninclude \"not-there.conf\" # none"
	beside := map[string]string{"one.conf": "a = 1\nb = 1\nx = 1", "sub/two.conf": "include \"three\"\nd = ${a}${y}\ne += 1\ne += 2", "sub/three": "y = 5"}
	got, fault := read(t, text, beside)
	require.Empty(t, fault)
	require.Equal(t, []string{"a = 1", "b = 2", "c.d = 15", "c.e = [1, 2]", "c.y = 5", "x = 1"}, got)
	beside["sub/two.conf"] = "# nothing\nd = ${z}"
	_, fault = read(t, text, beside)
	require.Equal(t, "sub/two.conf:2: ${z} is neither in the file nor in the environment", fault)
}

// covers includes, substitutions and units that are wrong: one fault with its place, and nothing of the file.
func TestWhatIsRefused(t *testing.T) {
	deep := strings.Repeat("a {", 40)
	var laughs strings.Builder
	laughs.WriteString("a0 = [x]\n")
	for i := range 40 {
		n := string(rune('a'+i/10)) + string(rune('0'+i%10))
		m := string(rune('a'+(i+1)/10)) + string(rune('0'+(i+1)%10))
		laughs.WriteString(m + " = ${" + n + "} ${" + n + "}\n")
	}
	for text, want := range map[string]string{
		"a = 1\nb":                             "application.conf:2: the key b has no value",
		"a = 1\n\nb = ":                        "application.conf:3: a value is missing",
		"a {\n b = 1":                          "application.conf:2: the end of the file, where a } is missing",
		"a = [1, 2":                            "application.conf:1: a ] is missing",
		"a = 1 }":                              "application.conf:1: ",
		"{ a = 1 } b":                          "application.conf:1: something follows the last }",
		"[1]":                                  "application.conf:1: a list, where an object is needed",
		"a = \"x":                              "application.conf:1: a text in quotes does not end in its line",
		"a = \"\\q\"":                          "application.conf:1: a text in quotes: ",
		"a = \"\"\"x":                          "application.conf:1: a text begins with \"\"\" and does not end",
		"a = ${b":                              "application.conf:1: ${ without } in its line",
		"a = ${}":                              "application.conf:1: ${}: a key is missing",
		"a = ${b}":                             "application.conf:1: ${b} is neither in the file nor in the environment",
		"x = 1\na = ${b}\nb = ${a}":            "refers to itself",
		"a = ${a}":                             "application.conf:1: refers to itself",
		"a { b = ${a} }":                       "refers to itself",
		"a = *":                                "application.conf:1: '*' needs quotes around it",
		"a = 1 [2]":                            "application.conf:1: values of different kinds side by side",
		".a = 1":                               "application.conf:1: a key with a name that is empty",
		"a. = 1":                               "application.conf:1: a key is missing, or ends with a dot",
		"= 1":                                  "application.conf:1: a key is missing, or ends with a dot",
		deep:                                   "application.conf:1: more than 32 levels",
		strings.Repeat("a.", 40) + "b = 1":     "application.conf:1: a key of more than 32 names",
		"a = [" + strings.Repeat("1,", 30_000): "application.conf:1: more than 20000 values",
		laughs.String():                        "the substitutions make more than 200000 values",
		"a = 1\ninclude \"../x.conf\"":         "is outside of the directory of the first file",
		"include \"/etc/passwd\"":              "is outside of the directory of the first file",
		"include url(\"http://a\")":            "only files beside this one are read",
		"include classpath(\"a\")":             "only files beside this one are read",
		"include required(\"none.conf\")":      "include ",
		"include \"application.conf\"":         "more than 8 levels of includes",
		"a = \xff":                             "application.conf: is not UTF-8 text",
		"a = 1\n" + strings.Repeat("#", 2<<20): "application.conf: has more than 1048576 bytes",
	} {
		got, fault := read(t, text, nil)
		require.Contains(t, fault, want, "%.40q", text)
		require.Nil(t, got)
	}
	_, err := hocon.Read(filepath.Join(t.TempDir(), "none.conf"), nil)
	require.ErrorContains(t, err, "none.conf: no such file")
	_, err = hocon.Read(t.TempDir(), nil)
	require.ErrorContains(t, err, "is not a regular file")
}

func FuzzRead(f *testing.F) {
	for _, text := range []string{"a { b = [1, \"x\", ${?c}] } // d\n", "a += 1\na = ${a} [2]\n", "include \"x\"\na.\"b\".c : \"\"\"d\"\"\"", "{a:{b:null}}", "a = ${b}\nb = ${c} {d = 1}\nc = ${?a}"} {
		f.Add(text)
	}
	dir := f.TempDir()
	path := filepath.Join(dir, "application.conf")
	f.Fuzz(func(t *testing.T, text string) {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		all, err := hocon.Read(path, nil)
		if err != nil {
			require.Nil(t, all)
			require.NotContains(t, err.Error(), "\n")
			return
		}
		for i, s := range all {
			require.NotEmpty(t, s.Path)
			require.Positive(t, s.Line, "setting %d", i)
		}
	})
}
