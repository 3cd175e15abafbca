"""The networks of window attention on grids: Swin Transformer and HT-Net."""

import torch
import torch.nn.functional as functional
from torch import nn

from .library import GridModel, Mlp, small_initial_values


def partition(x, window):
    """[batch, rows, columns, channels] -> [batch * windows, window, window, channels]"""
    batch, rows, columns, channels = x.shape
    x = x.view(batch, rows // window, window, columns // window, window, channels)
    return x.permute(0, 1, 3, 2, 4, 5).contiguous().view(-1, window, window, channels)


def unite(windows, window, rows, columns):
    batch = windows.shape[0] // (rows * columns // window**2)
    x = windows.view(batch, rows // window, columns // window, window, window, -1)
    return x.permute(0, 1, 3, 2, 4, 5).contiguous().view(batch, rows, columns, -1)


def relative_index(window):
    """[window^2, window^2]: row of the bias table for a query and a key."""
    place = torch.stack(torch.meshgrid(torch.arange(window), torch.arange(window), indexing="ij"), -1).flatten(0, 1)
    difference = place.unsqueeze(1) - place.unsqueeze(0) + window - 1
    return difference[..., 0] * (2 * window - 1) + difference[..., 1]


class WindowAttention(nn.Module):
    """`softmax`: Swin, scaled by the width of a head. Else HT-Net: scores / tokens, no softmax."""

    def __init__(self, width, window, heads, softmax):
        super().__init__()
        self.heads, self.softmax = heads, softmax
        self.scale = (width // heads) ** -0.5 if softmax else 1 / window**2
        self.relative_position_bias_table = nn.Parameter(torch.zeros((2 * window - 1) ** 2, heads))
        nn.init.trunc_normal_(self.relative_position_bias_table, std=0.02)
        self.register_buffer("relative_position_index", relative_index(window))
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x, mask=None):
        items, tokens, width = x.shape
        qkv = self.qkv(x).reshape(items, tokens, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        query, key, value = qkv[0], qkv[1], qkv[2]
        scores = (query * self.scale) @ key.transpose(-2, -1)
        bias = self.relative_position_bias_table[self.relative_position_index.view(-1)]
        scores = scores + bias.view(tokens, tokens, -1).permute(2, 0, 1).contiguous().unsqueeze(0)
        if mask is not None:
            windows = mask.shape[0]
            scores = scores.view(items // windows, windows, self.heads, tokens, tokens)
            scores = (scores + mask.unsqueeze(1).unsqueeze(0)).view(-1, self.heads, tokens, tokens)
        if self.softmax:
            scores = torch.softmax(scores, -1)
        return self.proj((scores @ value).transpose(1, 2).reshape(items, tokens, width))


def shift_mask(rows, columns, window, shift):
    """[windows, window^2, window^2]: -100 between tokens that were no neighbours before the roll."""
    labels, count = torch.zeros(1, rows, columns, 1), 0
    parts = (slice(0, -window), slice(-window, -shift), slice(-shift, None))
    for row in parts:
        for column in parts:
            labels[:, row, column] = count
            count += 1
    labels = partition(labels, window).view(-1, window * window)
    different = labels.unsqueeze(1) != labels.unsqueeze(2)
    return torch.zeros(different.shape).masked_fill(different, -100.0)


class SwinBlock(nn.Module):
    def __init__(self, width, size, heads, window, shift):
        super().__init__()
        if min(size) <= window:
            window, shift = min(size), 0
        self.size, self.window, self.shift = size, window, shift
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn = WindowAttention(width, window, heads, softmax=True)
        self.mlp = Mlp(width, 4 * width, width, inner=1)
        self.register_buffer("attn_mask", shift_mask(*size, window, shift) if shift else None)

    def forward(self, x):
        (batch, tokens, width), window, shift = x.shape, self.window, self.shift
        y = self.norm1(x).view(batch, *self.size, width)
        if shift:
            y = torch.roll(y, shifts=(-shift, -shift), dims=(1, 2))
        y = self.attn(partition(y, window).view(-1, window * window, width), self.attn_mask)
        y = unite(y.view(-1, window, window, width), window, *self.size)
        if shift:
            y = torch.roll(y, shifts=(shift, shift), dims=(1, 2))
        x = x + y.view(batch, tokens, width)
        return x + self.mlp(self.norm2(x))


class SwinStage(nn.Module):
    def __init__(self, width, size, heads, window):
        super().__init__()
        self.blocks = nn.ModuleList(SwinBlock(width, size, heads, window, shift) for shift in (0, window // 2))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


class Swin(GridModel):
    """Shifted windows at one resolution; every grid point is a token."""

    def __init__(self, settings):
        super().__init__(settings, head=2 * settings.n_hidden, placeholder=True)
        window = getattr(settings, "window_size", 4)
        stages = (SwinStage(settings.n_hidden, self.padded, settings.n_heads, window) for _ in range(settings.n_layers))
        self.blocks = nn.ModuleList(stages)
        self.apply(small_initial_values)

    def padded_size(self, size):
        window = getattr(self.settings, "window_size", 4)
        return tuple(-(-n // window) * window for n in size)

    def body(self, image):
        x = image.flatten(2).permute(0, 2, 1)
        for stage in self.blocks:
            x = stage(x)
        return x.permute(0, 2, 1).reshape(image.shape)


class DropPath(nn.Module):
    """Stochastic depth per sample. `recorded` is a list of factors [batch] to use in place of draws."""

    def __init__(self, rate):
        super().__init__()
        self.rate, self.recorded = rate, []

    def forward(self, x):
        if self.rate == 0 or not self.training:
            return x
        keep, shape = 1 - self.rate, (x.shape[0],) + (1,) * (x.dim() - 1)
        if self.recorded:
            return x * self.recorded.pop(0).view(shape)
        return x * x.new_empty(shape).bernoulli_(keep).div_(keep)


class HtMlp(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return self.fc2(functional.gelu(self.fc1(x)))


class HtBlock(nn.Module):
    def __init__(self, width, side, window, heads, rate):
        super().__init__()
        self.side, self.window = side, window
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn = WindowAttention(width, window, heads, softmax=False)
        self.mlp, self.drop_path = HtMlp(width), DropPath(rate)

    def forward(self, x):
        batch, tokens, width = x.shape
        y = partition(self.norm1(x).view(batch, self.side, self.side, width), self.window)
        y = self.attn(y.view(-1, self.window**2, width)).view(-1, self.window, self.window, width)
        x = x + self.drop_path(unite(y, self.window, self.side, self.side).view(x.shape))
        return x + self.drop_path(self.mlp(self.norm2(x)))


class PatchMerging(nn.Module):
    def __init__(self, width, side):
        super().__init__()
        self.side, self.norm = side, nn.LayerNorm(4 * width)
        self.reduction = nn.Linear(4 * width, 2 * width, bias=False)

    def forward(self, x):
        batch, _, width = x.shape
        x = x.view(batch, self.side, self.side, width)
        cells = [x[:, 0::2, 0::2], x[:, 1::2, 0::2], x[:, 0::2, 1::2], x[:, 1::2, 1::2]]
        return self.reduction(self.norm(torch.cat(cells, -1).view(batch, -1, 4 * width)))


class Rebuild(nn.Module):
    """Four chunks of channels to the four cells of the doubled grid."""

    def __init__(self, width, side):
        super().__init__()
        self.side, self.rebuildnet = side, nn.Linear(width, 2 * width)

    def forward(self, x):
        batch, _, width = x.shape
        chunks = self.rebuildnet(x).view(batch, self.side, self.side, 2 * width).chunk(4, -1)
        y = x.new_zeros(batch, 2 * self.side, 2 * self.side, width // 2)
        y[:, 0::2, 0::2], y[:, 1::2, 0::2], y[:, 0::2, 1::2], y[:, 1::2, 1::2] = chunks
        return y.view(batch, -1, width // 2)


class HtLevel(nn.Module):
    def __init__(self, width, side, window, heads, rates, last):
        super().__init__()
        self.blocks = nn.ModuleList(HtBlock(width, side, window, heads, rate) for rate in rates)
        self.downsample = None if last else PatchMerging(width, side)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x, x if self.downsample is None else self.downsample(x)


class HtAttention(nn.Module):
    """Down through the levels, up again by `relayers`; the first of these is never used."""

    def __init__(self, settings):
        super().__init__()
        depths = settings.depths
        rates = torch.linspace(0, 0.1, sum(depths)).tolist()
        self.layers, self.relayers = nn.ModuleList(), nn.ModuleList()
        for level, depth in enumerate(depths):
            width, side = settings.feature_dim * 2**level, settings.res_att // 2**level
            own, rates = rates[:depth], rates[depth:]
            self.layers.append(HtLevel(width, side, settings.window_size[level], settings.num_heads[level], own,
                                       last=level == len(depths) - 1))
            self.relayers.append(Rebuild(width, side))

    def forward(self, x):
        results = []
        for level in self.layers:
            result, x = level(x)
            results.append(result)
        for level in range(len(results) - 1, 0, -1):
            results[level - 1] = results[level - 1] + self.relayers[level](results[level])
        return results[0]


class PatchEmbedding(nn.Module):
    def __init__(self, settings):
        super().__init__()
        self.proj = nn.Conv2d(settings.in_dim, settings.feature_dim, settings.patch_size,
                              stride=settings.subsample_attn, padding=settings.patch_padding)
        self.norm = nn.LayerNorm(settings.feature_dim)

    def forward(self, image):
        return self.norm(self.proj(image).flatten(2).transpose(1, 2))


class HtSpectral(nn.Module):
    """The Fourier layer with weights as real pairs (in, out, modes, modes, 2)."""

    def __init__(self, width, modes):
        super().__init__()
        self.modes = modes
        bound = (2 * width / 16) ** 0.5 / width**2 * (6 / (2 * width * 2 * modes**2)) ** 0.5
        shape = (width, width, modes, modes, 2)
        self.fourier_weight1 = nn.Parameter(torch.empty(shape).uniform_(-bound, bound))
        self.fourier_weight2 = nn.Parameter(torch.empty(shape).uniform_(-bound, bound))

    def forward(self, image):
        modes, spectrum = self.modes, torch.fft.rfft2(image)
        first, second = torch.view_as_complex(self.fourier_weight1), torch.view_as_complex(self.fourier_weight2)
        kept = torch.zeros_like(spectrum)
        kept[:, :, :modes, :modes] = torch.einsum("bixy,ioxy->boxy", spectrum[:, :, :modes, :modes], first)
        kept[:, :, -modes:, :modes] = torch.einsum("bixy,ioxy->boxy", spectrum[:, :, -modes:, :modes], second)
        return torch.fft.irfft2(kept, s=image.shape[-2:])


class HtDecoderMlp(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Dropout(0.0), nn.Linear(hidden, 1))

    def forward(self, x):
        return self.net(x)


class HtDecoder(nn.Module):
    def __init__(self, settings):
        super().__init__()
        width, layers = settings.F_width, settings.num_spectral_layers
        self.padding, self.side = settings.F_padding, settings.res_output
        self.Spectral_Conv_List = nn.ModuleList(HtSpectral(width, settings.F_modes) for _ in range(layers))
        self.Conv2d_list = nn.ModuleList(nn.Conv2d(width, width, 3, padding=1) for _ in range(layers))
        self.mlp = HtDecoderMlp(width, settings.mlp_hidden_dim)

    def forward(self, x):
        if self.padding:
            x = functional.pad(x, [0, self.padding, 0, self.padding])
        layers = list(zip(self.Spectral_Conv_List, self.Conv2d_list))
        for spectral, convolution in layers[:-1] or layers:  # a single layer is the first and the last
            x = functional.gelu(spectral(x) + convolution(x))
        spectral, convolution = layers[-1]
        x = spectral(x) + convolution(x)
        if self.padding:
            x = x[..., :self.side, :self.side]
        return self.mlp(x.permute(0, 2, 3, 1))


class OutputNormaliser(nn.Module):
    def __init__(self, side):
        super().__init__()
        self.register_buffer("mean", torch.zeros(side, side))
        self.register_buffer("std", torch.ones(side, side))

    def forward(self, x):
        return x * (self.std + 1e-5) + self.mean


class HtNet(nn.Module):
    """Square images only; the coordinates are not used. [batch, R^2, fields] -> [batch, R_o^2, 1]"""

    def __init__(self, settings):
        super().__init__()
        self.settings = settings
        self.encoder, self.attn, self.decoder = PatchEmbedding(settings), HtAttention(settings), HtDecoder(settings)
        self.y_norm = OutputNormaliser(settings.res_output) if settings.y_norm else None
        self.apply(small_initial_values)

    def forward(self, points, values, time=None):
        settings, batch = self.settings, values.shape[0]
        image = values.permute(0, 2, 1).reshape(batch, -1, settings.res_input, settings.res_input)
        x = self.attn(self.encoder(image))
        x = x.permute(0, 2, 1).reshape(batch, -1, settings.res_att, settings.res_att)
        x = self.decoder(x).squeeze(-1)  # [batch, R_o, R_o]
        if self.y_norm is not None:
            x = self.y_norm(x)
        if settings.boundary_condition == "dirichlet":
            x = functional.pad(x[:, 1:-1, 1:-1], (1, 1, 1, 1))
        return x.reshape(batch, -1, 1)
