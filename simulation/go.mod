module github.com/quorate/quorate/simulation

go 1.26.0

require (
	github.com/quorate/quorate/gossip v0.0.0
	github.com/quorate/quorate/machine v0.0.0
)

require github.com/stretchr/testify v1.12.1

require go.yaml.in/yaml/v3 v3.0.6 // indirect

replace (
	github.com/quorate/quorate/gossip => ../gossip
	github.com/quorate/quorate/internal/patience => ../internal/patience
	github.com/quorate/quorate/machine => ../machine
)
