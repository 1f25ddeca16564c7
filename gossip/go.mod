module github.com/quorate/quorate/gossip

go 1.26.0
