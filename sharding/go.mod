module github.com/quorate/quorate/sharding

go 1.26.0

require (
	github.com/quorate/quorate/allocation v0.0.0
	github.com/quorate/quorate/membership v0.0.0
	github.com/quorate/quorate/gossip v0.0.0
	github.com/quorate/quorate/fd v0.0.0
	github.com/quorate/quorate/downing v0.0.0
	github.com/quorate/quorate/discovery v0.0.0
)

replace (
	github.com/quorate/quorate/allocation => ../allocation
	github.com/quorate/quorate/membership => ../membership
	github.com/quorate/quorate/gossip => ../gossip
	github.com/quorate/quorate/fd => ../fd
	github.com/quorate/quorate/downing => ../downing
	github.com/quorate/quorate/discovery => ../discovery
)
