"""Speed, as ratios in one run. ``python -m benchmarks`` runs everything, or what is named."""
