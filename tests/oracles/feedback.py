"""The safety check and the box feedback as loops over pixels and plain numbers; boxes have whole corners here."""


def inside(box, x, y):
    """Whether the pixel with this first corner lies in the box."""
    return box[0] <= x < box[2] and box[1] <= y < box[3]


def pixels_of_patch(film, grid, row, column):
    """Every pixel of one patch of a film that divides evenly."""
    (width, height), (rows, columns) = film, grid
    wide, high = width // columns, height // rows
    return [(x, y) for y in range(row * high, (row + 1) * high) for x in range(column * wide, (column + 1) * wide)]


def share(pixels, boxes):
    """Of these pixels, how many lie in any of the boxes."""
    return sum(any(inside(box, x, y) for box in boxes) for x, y in pixels) / len(pixels)


def importance(film, grid, positive, negative, alpha=0.5):
    """What each patch counts: 1 under positive boxes, 0 under negative ones, alpha elsewhere."""
    if not positive and not negative:
        return [[1.0] * grid[1] for _ in range(grid[0])]
    counts = []
    for row in range(grid[0]):
        counts.append([])
        for column in range(grid[1]):
            pixels = pixels_of_patch(film, grid, row, column)
            worth = [
                0.0 if share([pixel], negative) else 1.0 if share([pixel], positive) else alpha for pixel in pixels
            ]
            counts[-1].append(sum(worth) / len(worth))
    return counts


def revised(similarity, counts):
    """One concept's M maps: the importance applied to (S + 1) / 2, mapped back to a cosine."""
    return [
        [[2 * (counts[i][j] * (value + 1) / 2) - 1 for j, value in enumerate(row)] for i, row in enumerate(one)]
        for one in similarity
    ]


def mean_inside(one_map, film, box):
    """Mean over the pixels of a box of the patch that each lies in."""
    rows, columns = len(one_map), len(one_map[0])
    values = [
        one_map[y * rows // film[1]][x * columns // film[0]]
        for y in range(film[1])
        for x in range(film[0])
        if inside(box, x, y)
    ]
    return sum(values) / len(values)


def warns(means, variances, claimed, lead, gate, untrained=()):
    """Whether the strongest other concept leads by more than ``lead`` and its prototypes agree well enough."""
    rival = None
    for k, mean in enumerate(means):
        if k != claimed and k not in untrained and (rival is None or mean > means[rival]):
            rival = k
    return rival is not None and means[rival] - means[claimed] > lead and variances[rival] <= gate
