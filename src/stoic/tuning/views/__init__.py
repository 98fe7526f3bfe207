"""What is shown of a study: summary, trust, certificates, report, trials, progress."""
