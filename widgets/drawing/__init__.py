"""What is drawn and where: boxes, folds and colours of the split graph and of FX graphs."""
