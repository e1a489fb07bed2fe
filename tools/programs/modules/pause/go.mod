module local-azure/tools/pause

go 1.26.0
