module github.com/quorate/quorate/downing

go 1.26.0

require (
	github.com/quorate/quorate/gossip v0.0.0
)

replace (
	github.com/quorate/quorate/gossip => ../gossip
)
