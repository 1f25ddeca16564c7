module github.com/quorate/quorate/tools

go 1.26.0

require (
	github.com/stretchr/testify v1.12.1
	golang.org/x/mod v0.41.0
	golang.org/x/tools v0.51.0
)

require github.com/google/go-cmp v0.7.0 // indirect

require (
	github.com/alecthomas/kong v1.17.0
	github.com/go-viper/mapstructure/v2 v2.4.0 // indirect
	github.com/knadh/koanf/maps v0.1.2 // indirect
	github.com/knadh/koanf/parsers/yaml v1.1.1 // indirect
	github.com/knadh/koanf/providers/env/v2 v2.0.2 // indirect
	github.com/knadh/koanf/providers/rawbytes v1.0.0 // indirect
	github.com/knadh/koanf/v2 v2.4.1 // indirect
	github.com/mitchellh/copystructure v1.2.0 // indirect
	github.com/mitchellh/reflectwalk v1.0.2 // indirect
)

require (
	github.com/quorate/quorate/config v0.0.0
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sync v0.24.0 // indirect
)

replace (
	github.com/quorate/quorate/allocation => ../allocation
	github.com/quorate/quorate/cluster => ../cluster
	github.com/quorate/quorate/config => ../config
	github.com/quorate/quorate/discovery => ../discovery
	github.com/quorate/quorate/downing => ../downing
	github.com/quorate/quorate/fd => ../fd
	github.com/quorate/quorate/gossip => ../gossip
	github.com/quorate/quorate/membership => ../membership
	github.com/quorate/quorate/sharding => ../sharding
)
