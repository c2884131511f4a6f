"""The scale of first weights: the standard deviations of Xavier and He initialisation.

Source: Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural networks" (2010); He et
al., "Delving Deep into Rectifiers" (2015).
"""

import math

from smalltorch.shapes import check_integers


def xavier_std(d_in: int, d_out: int) -> float:
    """sqrt(2 / (d_in + d_out)): between what keeps signals at their size on the way up and gradients on the way down.

        >>> xavier_std(4, 4)
        0.5

    Chapter `initialisation`. Source: Glorot and Bengio (2010).

    Raises:
        ValueError: for a width below 1.
    """
    d_in, d_out = check_integers(1, d_in=d_in, d_out=d_out)
    return math.sqrt(2 / (d_in + d_out))


def he_std(d_in: int) -> float:
    """sqrt(2 / d_in): keeps the mean square of what ReLU lets through.

        >>> he_std(8)
        0.5

    Chapter `initialisation`. Source: He et al. (2015).

    Raises:
        ValueError: for a width below 1.
    """
    d_in = check_integers(1, d_in=d_in)
    return math.sqrt(2 / d_in)
