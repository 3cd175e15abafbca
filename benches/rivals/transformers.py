"""The transformers of Neural-Solver-Library: Galerkin Transformer, GNOT, FactFormer and ONO."""

import torch
import torch.nn.functional as functional
from torch import nn

from .library import Mlp, LibraryModel, small_initial_values


def split_heads(x, heads):
    """[batch, points, heads * channels] -> [batch, heads, points, channels]"""
    return x.view(*x.shape[:2], heads, -1).transpose(1, 2)


def join_heads(x):
    return x.transpose(1, 2).contiguous().flatten(2)


class LinearAttention(nn.Module):
    """Queries and keys softmaxed over the channels of a head; the query is added. kind: galerkin or l1."""

    def __init__(self, width, heads, kind):
        super().__init__()
        self.heads, self.kind = heads, kind
        self.query, self.key, self.value, self.proj = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x, source=None):
        source = x if source is None else source
        query = split_heads(self.query(x), self.heads).softmax(-1)
        key = split_heads(self.key(source), self.heads).softmax(-1)
        value = split_heads(self.value(source), self.heads)
        if self.kind == "galerkin":
            scale = 1.0 / source.shape[1]
        else:
            scale = 1.0 / (query * key.sum(-2, keepdim=True)).sum(-1, keepdim=True)
        y = (query @ (key.transpose(-2, -1) @ value)) * scale + query
        return self.proj(join_heads(y))


class Galerkin(LibraryModel):
    def __init__(self, settings):
        super().__init__(settings, placeholder=True)
        last = settings.n_layers - 1
        self.blocks = nn.ModuleList(GalerkinBlock(settings, layer == last) for layer in range(settings.n_layers))
        self.apply(small_initial_values)

    def forward(self, points, values=None, time=None):
        features = self.lift(points, values, time)
        for block in self.blocks:
            features = block(features)
        return features


class GalerkinBlock(nn.Module):
    def __init__(self, settings, last):
        super().__init__()
        width, self.last = settings.n_hidden, last
        self.ln_1, self.ln_1a, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width), nn.LayerNorm(width)
        self.Attn = LinearAttention(width, settings.n_heads, "galerkin")
        self.mlp = Mlp(width, settings.mlp_ratio * width, width, settings.act)
        if last:
            self.ln_3, self.mlp2 = nn.LayerNorm(width), nn.Linear(width, settings.out_dim)

    def forward(self, x):
        x = self.Attn(self.ln_1(x), self.ln_1a(x)) + x
        x = self.mlp(self.ln_2(x)) + x
        return self.mlp2(self.ln_3(x)) if self.last else x


class Gnot(LibraryModel):
    """Cross-attention from the geometry to the observations; every block starts again from the geometry."""

    def __init__(self, settings):
        super().__init__(settings, placeholder=True, lifting=False)
        width = settings.n_hidden
        self.preprocess_x = self.lifting_mlp(self.position_width)
        self.preprocess_z = self.lifting_mlp(self.position_width + settings.fun_dim)
        self.blocks = nn.ModuleList(GnotBlock(settings) for _ in range(settings.n_layers))
        self.fc1, self.fc2 = nn.Linear(width, 2 * width), nn.Linear(2 * width, settings.out_dim)
        self.apply(small_initial_values)

    def forward(self, points, values=None, time=None):
        positions = self.positions(points)
        geometry = self.preprocess_x(positions)
        observed = self.preprocess_z(positions if values is None else torch.cat((positions, values), -1))
        observed = self.finish_lifting(observed, time)
        for block in self.blocks:
            observed = block(geometry, observed, points)
        return self.fc2(functional.gelu(self.fc1(observed)))


class GnotBlock(nn.Module):
    def __init__(self, settings):
        super().__init__()
        width, inner = settings.n_hidden, settings.mlp_ratio * settings.n_hidden
        experts = getattr(settings, "n_experts", 3)
        self.ln1, self.ln2, self.ln3, self.ln4, self.ln5 = (nn.LayerNorm(width) for _ in range(5))
        self.crossattn = LinearAttention(width, settings.n_heads, "l1")
        self.selfattn = LinearAttention(width, settings.n_heads, "l1")
        self.moe_mlp1, self.moe_mlp2 = (nn.ModuleList(
            nn.Sequential(nn.Linear(width, inner), nn.GELU(), nn.Linear(inner, width)) for _ in range(experts))
            for _ in range(2))
        self.gatenet = nn.Sequential(nn.Linear(settings.space_dim, inner), nn.GELU(), nn.Linear(inner, inner),
                                     nn.GELU(), nn.Linear(inner, experts))

    def forward(self, geometry, observed, points):
        gate = functional.softmax(self.gatenet(points), -1).unsqueeze(2)  # [batch, points, 1, experts]
        u = geometry + self.crossattn(self.ln1(geometry), self.ln2(observed))
        u = u + self.ln3((gate * torch.stack([expert(u) for expert in self.moe_mlp1], -1)).sum(-1))
        u = u + self.selfattn(self.ln4(u))
        return u + self.ln5((gate * torch.stack([expert(u) for expert in self.moe_mlp2], -1)).sum(-1))


class Permute(nn.Module):
    def __init__(self, *order):
        super().__init__()
        self.order = order

    def forward(self, x):
        return x.permute(self.order)


class NormedMlp(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.fn = nn.LayerNorm(width), Mlp(width, width, width, inner=1)

    def forward(self, x):
        return self.fn(self.norm(x))


class PoolingReducer(nn.Module):
    """[batch, n, ..., channels] -> [batch, n, channels], the mean over the other axes of the grid."""

    def __init__(self, width):
        super().__init__()
        self.to_in, self.out_ffn = nn.Linear(width, width, bias=False), NormedMlp(width)

    def forward(self, x):
        return self.out_ffn(self.to_in(x).mean(tuple(range(2, x.dim() - 1))))


class AxisKernel(nn.Module):
    """[batch, n, channels] -> softmax kernel [batch, heads, n, n]"""

    def __init__(self, heads, channels):
        super().__init__()
        self.heads, self.scale = heads, channels**-0.5
        self.to_q, self.to_k = nn.Linear(channels, channels, bias=False), nn.Linear(channels, channels, bias=False)

    def forward(self, x):
        x = split_heads(x, self.heads)
        return torch.softmax(torch.einsum("bhic,bhjc->bhij", self.to_q(x), self.to_k(x)) * self.scale, -1)


class FactorisedAttention(nn.Module):
    """One kernel per axis of a grid of two or three axes, all of the same input."""

    def __init__(self, width, heads, shape):
        super().__init__()
        self.heads, self.shape, channels = heads, shape, width // heads
        self.to_v = nn.Linear(channels, channels, bias=False)
        self.to_out = nn.Sequential(nn.Linear(width, width))
        orders = {2: ((0, 2, 1, 3),), 3: ((0, 2, 1, 3, 4), (0, 3, 1, 2, 4))}[len(shape)]
        self.to_x, self.attn_x = nn.Sequential(PoolingReducer(width)), AxisKernel(heads, channels)
        for axis, order in zip("yz", orders):
            setattr(self, f"to_{axis}", nn.Sequential(Permute(*order), PoolingReducer(width)))
            setattr(self, f"attn_{axis}", AxisKernel(heads, channels))

    def forward(self, x):
        (batch, points, width), shape = x.shape, self.shape
        value = self.to_v(split_heads(x, self.heads)).unflatten(2, shape)
        x = x.view(batch, *shape, width)
        if len(shape) == 2:
            value = torch.einsum("bhij,bhjmc->bhimc", self.attn_x(self.to_x(x)), value)
            value = torch.einsum("bhlm,bhimc->bhilc", self.attn_y(self.to_y(x)), value)
        else:
            value = torch.einsum("bhij,bhjmsc->bhimsc", self.attn_x(self.to_x(x)), value)
            value = torch.einsum("bhlm,bhimsc->bhilsc", self.attn_y(self.to_y(x)), value)
            value = torch.einsum("bhrs,bhilsc->bhilrc", self.attn_z(self.to_z(x)), value)
        return self.to_out(join_heads(value.reshape(batch, self.heads, points, -1)))


class FactFormerBlock(nn.Module):
    def __init__(self, settings, last):
        super().__init__()
        width, self.last = settings.n_hidden, last
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.Attn = FactorisedAttention(width, settings.n_heads, settings.shapelist)
        self.mlp = Mlp(width, settings.mlp_ratio * width, width, settings.act)
        if last:
            self.ln_3, self.mlp2 = nn.LayerNorm(width), nn.Linear(width, settings.out_dim)

    def forward(self, x):
        x = self.Attn(self.ln_1(x)) + x
        x = self.mlp(self.ln_2(x)) + x
        return self.mlp2(self.ln_3(x)) if self.last else x


class FactFormer(LibraryModel):
    def __init__(self, settings):
        super().__init__(settings, placeholder=True)
        last = settings.n_layers - 1
        self.blocks = nn.ModuleList(FactFormerBlock(settings, layer == last) for layer in range(settings.n_layers))
        self.apply(small_initial_values)

    def forward(self, points, values=None, time=None):
        features = self.lift(points, values, time)
        for block in self.blocks:
            features = block(features)
        return features


class EfficientAttention(nn.Module):
    """ONO's "selfAttention": queries softmaxed over channels, keys over the points."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.scale = heads, (width // heads) ** -0.5
        self.to_q, self.to_k, self.to_v = (nn.Linear(width, width, bias=False) for _ in range(3))
        self.to_out = nn.Linear(width, width)

    def forward(self, x):
        query, key, value = (split_heads(layer(x), self.heads) for layer in (self.to_q, self.to_k, self.to_v))
        query, key = query.softmax(-1) * self.scale, key.softmax(-2)
        return self.to_out(join_heads(query @ (key.transpose(-2, -1) @ value)))


def pseudo_inverse(matrix, iterations):
    """Newton-Schulz of third order; the scale is one number for all samples and heads."""
    absolute = matrix.abs()
    z = matrix.transpose(-1, -2) / (absolute.sum(-1).max() * absolute.sum(-2).max())
    identity = torch.eye(matrix.shape[-1], device=matrix.device).unsqueeze(0)
    for _ in range(iterations):
        w = matrix @ z
        z = 0.25 * z @ (13 * identity - (w @ (15 * identity - (w @ (7 * identity - w)))))
    return z


class NystromAttention(nn.Module):
    def __init__(self, width, heads, landmarks=256, iterations=6, kernel=33):
        super().__init__()
        self.heads, self.landmarks, self.iterations = heads, landmarks, iterations
        self.scale = (width // heads) ** -0.5
        self.to_qkv = nn.Linear(width, 3 * width, bias=False)
        self.to_out = nn.Sequential(nn.Linear(width, width), nn.Dropout(0.0))
        self.res_conv = nn.Conv2d(heads, heads, (kernel, 1), padding=(kernel // 2, 0), groups=heads, bias=False)

    def forward(self, x):
        points, landmarks = x.shape[1], self.landmarks
        if points % landmarks:
            x = functional.pad(x, (0, 0, landmarks - points % landmarks, 0))  # zeros in front
        query, key, value = (split_heads(part, self.heads) for part in self.to_qkv(x).chunk(3, -1))
        query = query * self.scale
        each = query.shape[2] // landmarks
        query_marks, key_marks = (part.reshape(*part.shape[:2], landmarks, each, -1).sum(-2) / each
                                  for part in (query, key))
        to_marks = torch.einsum("bhid,bhjd->bhij", query, key_marks).softmax(-1)
        between = torch.einsum("bhid,bhjd->bhij", query_marks, key_marks).softmax(-1)
        from_marks = torch.einsum("bhid,bhjd->bhij", query_marks, key).softmax(-1)
        y = (to_marks @ pseudo_inverse(between, self.iterations)) @ (from_marks @ value)
        y = y + self.res_conv(value)
        return self.to_out(join_heads(y))[:, -points:]


def guarded_cholesky(matrix):
    """Cholesky with jitter 1e-6 (1e-8 in double) times 1, 10, ... on the diagonal until it succeeds."""
    try:
        factor = torch.linalg.cholesky(matrix)
        if not torch.isnan(factor).any():
            return factor
    except RuntimeError:
        pass
    if torch.isnan(matrix).any():
        raise ValueError("the covariance of ONO has NaN")
    jitter = 1e-6 if matrix.dtype == torch.float32 else 1e-8
    for power in range(10):
        shifted = matrix.clone()
        shifted.diagonal(dim1=-2, dim2=-1).add_(jitter * 10**power)
        try:
            factor = torch.linalg.cholesky(shifted)
            if not torch.isnan(factor).any():
                return factor
        except RuntimeError:
            continue
    raise ValueError("the covariance of ONO stays indefinite after ten jitters")


class OnoBlock(nn.Module):
    def __init__(self, settings, last, momentum=0.9):
        super().__init__()
        width, inner, self.momentum = settings.n_hidden, settings.mlp_ratio * settings.n_hidden, momentum
        self.register_buffer("feature_cov", None)
        self.mu = nn.Parameter(torch.zeros(settings.psi_dim))
        self.ln_1, self.ln_2, self.ln_3 = (nn.LayerNorm(width) for _ in range(3))
        attentions = {"nystrom": lambda: NystromAttention(width, settings.n_heads),
                      "linear": lambda: LinearAttention(width, settings.n_heads, "galerkin"),
                      "selfAttention": lambda: EfficientAttention(width, settings.n_heads)}
        self.Attn = attentions[settings.attn_type]()
        self.mlp = Mlp(width, inner, width, settings.act)
        self.proj = nn.Linear(width, settings.psi_dim)
        self.mlp2 = nn.Linear(width, settings.out_dim) if last else Mlp(width, inner, width, settings.act)

    def covariance(self, basis):
        if not self.training:
            return self.feature_cov
        covariance = torch.einsum("blc,bld->cd", basis, basis) / (basis.shape[0] * basis.shape[1])
        with torch.no_grad():
            if self.feature_cov is None:
                self.feature_cov = covariance.detach().clone()
            else:
                self.feature_cov.mul_(self.momentum).add_(covariance, alpha=1 - self.momentum)
        return covariance

    def forward(self, x, f):
        x = self.Attn(self.ln_1(x)) + x
        x = self.mlp(self.ln_2(x)) + x
        basis = self.proj(x)
        basis = basis @ guarded_cholesky(self.covariance(basis)).inverse().transpose(-2, -1)
        f = (basis * functional.softplus(self.mu)) @ (basis.transpose(-2, -1) @ f) + f
        return x, self.mlp2(self.ln_3(f))


class Ono(LibraryModel):
    """Two streams: features that give an orthonormal basis, and the function that its kernel moves."""

    def __init__(self, settings):
        super().__init__(settings, placeholder=True, lifting=False)
        self.preprocess_x = self.lifting_mlp(self.position_width + settings.fun_dim)
        self.preprocess_z = self.lifting_mlp(self.position_width + settings.fun_dim)
        last = settings.n_layers - 1
        self.blocks = nn.ModuleList(OnoBlock(settings, layer == last) for layer in range(settings.n_layers))
        self.apply(small_initial_values)

    def forward(self, points, values=None, time=None):
        positions = self.positions(points)
        inputs = positions if values is None else torch.cat((positions, values), -1)
        x, f = self.preprocess_x(inputs), self.finish_lifting(self.preprocess_z(inputs), time)
        for block in self.blocks:
            x, f = block(x, f)
        return f
