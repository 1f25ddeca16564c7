module github.com/quorate/quorate/allocation

go 1.26.0

require (
	github.com/quorate/quorate/config/field v0.0.0
	github.com/quorate/quorate/gossip v0.0.0
	github.com/quorate/quorate/internal/patience v0.0.0
	github.com/stretchr/testify v1.12.1
	pgregory.net/rapid v1.3.0
)

require go.yaml.in/yaml/v3 v3.0.6 // indirect

replace (
	github.com/quorate/quorate/config/field => ../config/field
	github.com/quorate/quorate/gossip => ../gossip
	github.com/quorate/quorate/internal/patience => ../internal/patience
)
