module github.com/quorate/quorate/sharding

go 1.26.0

require (
	github.com/cespare/xxhash/v2 v2.3.0
	github.com/quorate/quorate/allocation v0.0.0
	github.com/quorate/quorate/discovery v0.0.0
	github.com/quorate/quorate/downing v0.0.0
	github.com/quorate/quorate/fd v0.0.0
	github.com/quorate/quorate/gossip v0.0.0
	github.com/quorate/quorate/membership v0.0.0
	github.com/stretchr/testify v1.12.1
	pgregory.net/rapid v1.3.0
)

replace (
	github.com/quorate/quorate/allocation => ../allocation
	github.com/quorate/quorate/discovery => ../discovery
	github.com/quorate/quorate/downing => ../downing
	github.com/quorate/quorate/fd => ../fd
	github.com/quorate/quorate/gossip => ../gossip
	github.com/quorate/quorate/membership => ../membership
)
