// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package config reads YAML and JSON files, providers of koanf and the environment into
// typed, strictly checked structs, and reports everything that is wrong at once.
//
//	base.yaml ─┐
//	etcd, …   ─┼─ Load ──▶ File ── Decode ──▶ defaults overwritten, validated
//	QUORATE_… ─┘  syntax,          unknown keys, bad values, Validate errors:
//	              duplicates       one list, each with place, key, nearest key
//
// # Use
//
//	cfg := membership.Default()
//	file, err := config.Load("cluster.yaml", "site.yaml")
//	...
//	err = file.Decode("membership", &cfg)
//
// Decode("", &all) decodes the whole document into a struct whose fields are the
// sections, so that the errors of all sections come together. [File.DecodeAll] adds
// sections whose structs are declared elsewhere.
//
// # Structs
//
// A field takes part when it has a tag `koanf:"kebab-case-name"`; fields without
// one are for code and are never set from a file. What the struct holds before
// Decode are the defaults. Allowed are string, bool, integers, floats,
// [time.Duration], any type with UnmarshalText, structs (also embedded, with
// `koanf:",squash"`), pointers to these, slices, maps from string for entries
// that users name, and any for settings that other code checks. A list
// replaces the default list; entries of a map are merged into the default map.
//
// If a section, or a value in it, has a method Validate() error, it is called
// after decoding. The errors that it returns, joined with [errors.Join] when
// there are several, are placed at the key that they speak of when they have a
// method
//
//	Field() string // the key relative to the struct, such as "failure-detector.threshold"
//
// as those of package config/field have, so a module can point at its keys without
// importing this package. Validate is
// called on the outermost struct that has it; checking the structs inside is
// that method's affair. A whole document that has a Validate of its own is asked
// after its sections.
//
// Entries of maps, and groups in lists, begin with what their method
//
//	SetDefaults()
//
// sets, called on a pointer to a new one, if they have it.
//
// # Descriptions
//
// [Settings] lists the keys of a struct with their defaults, and [Changes] those
// that differ between two structs. Further tags of a field say what a type
// cannot:
//
//	unit:"bytes"             what a number counts
//	range:"1..65536"         the values that a number or duration may have, see [field.ParseRange]
//	oneof:"abort|abandon"    the only texts
//	known:"least-shard"      texts with a meaning, among others
//	required:"yes"           there is no default
//	reload:"yes"             may change while the program runs; of a group, all of it
//	hidden:"yes"             may be secret: [File.Values] does not show it
//	meaning:"How many."      what the setting does, for package manual
//
// They are descriptions: what is refused is Validate's affair.
//
// # Files
//
// The end of its name tells the format of a file: .json, or that of a [Format] which the
// program gives to its [Loader], such as TOML of the module config/toml; everything
// else is read as YAML. All formats have the same rules, and faults in all of
// them name the line. Several files are merged in order: maps key by key,
// everything else replaced. A file is UTF-8 text of at most 1 MiB, 32 levels and
// 10,000 keys and list items, with or without a byte order mark and carriage
// returns, holding one document whose top is a map. Duplicate keys are errors; so
// are anchors and aliases of YAML, and values that the format
// reads as something other than what the field is (version: 1.10 for a string).
//
// A list of files under the key include, at the top of a file, is laid under
// that file, the later over the earlier:
//
//	include: [base.yaml, sites/eu.toml]
//
// The names are relative to the file that includes. For security, included files
// must be in the directory of the file that was named to [Load], or below it,
// symbolic links resolved. Files include one another at most 8 levels deep, 100
// files in all, and never in a circle. The key $schema at the top, by which
// editors find the schema of a JSON file, is ignored.
//
// # Providers
//
// A [Loader] has settings of koanf's providers as further layers, see [Provider]: they are
// held to the same rules as files, and faults name the provider and the key. One that
// fails, or does not answer for ten seconds, is a fault like a file that is not there: the
// loading fails, and when it happens later, to [File.Reload] or [File.Watch], that is the
// error, and what was loaded before counts on.
//
// # References
//
// In any text, ${file:PATH} stands for the content of a file, without the line break at
// its end, and ${env:NAME} for a variable of the environment: for passwords and tokens,
// which do not belong into a file of settings. A path is relative to [File.Dir]; a file
// is UTF-8 of at most 64 KiB. References are replaced when all layers are merged, once:
// what one stands for is no reference. Where it is the whole value, the text becomes what
// the setting needs. $${file:PATH} is the text without its first character. Faults do
// not show what a reference stands for. [File.Reload] reads it again, and a [Watcher]
// follows the files.
//
// # Environment
//
// A variable overrides one key. After the prefix QUORATE_, two underscores
// separate levels and one underscore stands for a hyphen:
//
//	QUORATE_MEMBERSHIP__GOSSIP_INTERVAL=2s     membership.gossip-interval
//	QUORATE_NODE__ROLES=backend,eu             node.roles: [backend, eu]
//	QUORATE_NODE__ROLES='["a,b", c]'           node.roles: ["a,b", c]
//	QUORATE_PLUGINS__WITNESS__PATH=/opt/w      plugins.witness.path
//
// A name without two underscores is no setting (container platforms inject such
// names, QUORATE_SERVICE_HOST for one) unless it is a known key misspelt with
// one underscore or the name of a section alone, which are errors. Names that users
// choose can be reached when they have no capital letters and no underscores.
//
// # Guarantees
//
// Decode changes its target only if it returns nil. The same input gives the same
// errors in the same order. A [File] is immutable, and safe for concurrent use.
// Only the named files, what they include, the providers and the environment are read.
// No goroutine is started, but by [File.Watch], which ends with [Watcher.Close], and for a
// question to a provider, which ends with its answer.
// Reloading means loading again, see [File.Reload]: a fresh File never keeps a key
// that was deleted from its source.
package config
