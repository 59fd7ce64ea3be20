"""One function for each equation; arguments are nested lists or tensors that are read one number at a time."""

import math


def dot(a, b):
    return sum(float(x) * float(y) for x, y in zip(a, b, strict=True))


def norm(a):
    return math.sqrt(dot(a, a))


def similarity_map(prototypes, patches):
    """S[k][m][i][j] for patches[d][i][j]."""
    depth, height, width = len(patches), len(patches[0]), len(patches[0][0])
    return [
        [
            [
                [sum(float(p[d]) * float(patches[d][i][j]) for d in range(depth)) for j in range(width)]
                for i in range(height)
            ]
            for p in concept
        ]
        for concept in prototypes
    ]


def mean_map(similarity, i, j):
    """mu at one patch, of one concept's M maps."""
    return sum(one[i][j] for one in similarity) / len(similarity)


def variance_map(similarity, i, j):
    """U at one patch: the population variance."""
    mean = mean_map(similarity, i, j)
    return sum((one[i][j] - mean) ** 2 for one in similarity) / len(similarity)


def score(one_map):
    """s_km: the best patch."""
    return max(max(row) for row in one_map)


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def binary_cross_entropy(logit, label):
    return -(label * math.log(sigmoid(logit)) + (1 - label) * math.log(1 - sigmoid(logit)))


def stage_one(maps, labels):
    """Eq. 11 for one film: BCE on spatially averaged maps, averaged over concepts."""
    costs = []
    for one, label in zip(maps, labels, strict=True):
        values = [float(x) for row in one for x in row]
        costs.append(binary_cross_entropy(sum(values) / len(values), label))
    return sum(costs) / len(costs)


def concept_vector(one_map, features):
    """Eq. 12: features averaged by the softmax of the raw map."""
    height, width = len(one_map), len(one_map[0])
    weights = {(i, j): math.exp(float(one_map[i][j])) for i in range(height) for j in range(width)}
    total = sum(weights.values())
    return [sum(weights[i, j] / total * float(f[i][j]) for i, j in weights) for f in features]


def soft_similarity(vector, prototypes, gamma):
    """Eqs. 8 and 9."""
    cosines = [dot(vector, p) for p in prototypes]
    weights = [math.exp(gamma * c) for c in cosines]
    return sum(w / sum(weights) * c for w, c in zip(weights, cosines, strict=True))


def contrastive(similarities, truth, scale, margin):
    """Eq. 10 with the margin on the true concept's logit."""
    logits = [scale * (s + (margin if k == truth else 0.0)) for k, s in enumerate(similarities)]
    return -logits[truth] + math.log(sum(math.exp(x) for x in logits))


def alignment(prototypes, anchors):
    """Eq. 7."""
    costs = [1 - dot(p, anchor) for concept, anchor in zip(prototypes, anchors, strict=True) for p in concept]
    return sum(costs) / len(costs)


def conditional_probability(labels):
    """Eq. 3: A[k][j] = P(k given j), denominator at least one."""
    count = len(labels[0])
    together = [[sum(row[k] * row[j] for row in labels) for j in range(count)] for k in range(count)]
    return [[together[k][j] / max(sum(row[j] for row in labels), 1) for j in range(count)] for k in range(count)]


def graph_attention(nodes, edges, weight, a, slope=0.2):
    """Eqs. 13 to 15 for one head: new vectors, and the weights alpha[k][j]."""
    count = len(nodes)
    spoken = [[dot(row, node) for row in weight] for node in nodes]
    alphas, heard = [], []
    for k in range(count):
        scores = {}
        for j in range(count):
            if edges[k][j]:
                e = dot(a, [*spoken[k], *spoken[j]])
                scores[j] = e if e > 0 else slope * e
        total = sum(math.exp(e) for e in scores.values())
        alpha = {j: math.exp(e) / total for j, e in scores.items()}
        alphas.append([alpha.get(j, 0.0) for j in range(count)])
        summed = [sum(alpha[j] * spoken[j][d] for j in alpha) for d in range(len(weight))]
        heard.append([x if x > 0 else math.exp(x) - 1 for x in summed])
    return heard, alphas
