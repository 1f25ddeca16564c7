module github.com/quorate/quorate/config

go 1.26.0
