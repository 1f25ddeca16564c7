module github.com/quorate/quorate/tools

go 1.26.0

require (
	github.com/stretchr/testify v1.12.1
	golang.org/x/mod v0.42.0
	golang.org/x/tools v0.52.0
)

require (
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
