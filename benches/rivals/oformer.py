"""OFormer: linear attention with rotations by the coordinates, cross attention to query points.

The network input is [values | points]; the steady classes give [batch, points, outputs], the classes for
time series [batch, steps * outputs, points].
"""

import math

import torch
import torch.nn.functional as functional
from torch import nn


class RotaryAngles(nn.Module):
    def __init__(self, channels, scale):
        super().__init__()
        self.scale = scale
        self.register_buffer("inv_freq", 1.0 / (10000 ** (torch.arange(0, channels, 2).float() / channels)))

    def forward(self, coordinate):
        """[batch, points] -> [batch, points, channels], every angle twice"""
        angles = torch.einsum("bi,j->bij", coordinate * self.scale, self.inv_freq)
        return torch.cat((angles, angles), -1)


def rotate(x, angles):
    first, second = x.chunk(2, -1)
    return x * angles.cos() + torch.cat((-second, first), -1) * angles.sin()


def rotate_by_points(x, angles):
    """x [batch, heads, points, channels]: the first half is turned by the first coordinate, the second by the second"""
    first, second = x.chunk(2, -1)
    return torch.cat((rotate(first, angles[0]), rotate(second, angles[1])), -1)


class RotaryGalerkin(nn.Module):
    """q (k^T v) / points with k and v normalised over the channels of a head."""

    def angles(self, points):
        return [self.emb_module(points[..., axis]).unsqueeze(1).repeat(1, self.heads, 1, 1) for axis in (0, 1)]

    def normalise(self, x):
        batch, heads = x.shape[:2]
        return functional.instance_norm(x.flatten(0, 1)).unflatten(0, (batch, heads))

    def split(self, x):
        return x.view(*x.shape[:2], self.heads, -1).permute(0, 2, 1, 3)

    def attend(self, query, key, value, query_angles, key_angles):
        query, key, value = self.split(query), self.split(key), self.split(value)
        key, value = self.normalise(key), self.normalise(value)
        query, key = rotate_by_points(query, query_angles), rotate_by_points(key, key_angles)
        y = torch.matmul(query, torch.matmul(key.transpose(-1, -2), value)) * (1.0 / key.shape[2])
        return self.to_out(y.permute(0, 2, 1, 3).flatten(2))


class SelfAttention(RotaryGalerkin):
    def __init__(self, width, heads, scale, dropout):
        super().__init__()
        self.heads = heads
        self.to_qkv = nn.Linear(width, 3 * heads * width, bias=False)
        self.emb_module = RotaryAngles(width // 2, scale)
        out = nn.Sequential(nn.Linear(heads * width, width), nn.Dropout(dropout))
        self.to_out = nn.Identity() if heads == 1 else out

    def forward(self, x, points):
        angles = self.angles(points)
        return self.attend(*self.to_qkv(x).chunk(3, -1), angles, angles)


class CrossAttention(RotaryGalerkin):
    def __init__(self, width, heads, scale):
        super().__init__()
        self.heads = heads
        self.to_q = nn.Linear(width, heads * width, bias=False)
        self.to_kv = nn.Linear(width, 2 * heads * width, bias=False)
        self.emb_module = RotaryAngles(width // 2, scale)
        self.to_out = nn.Sequential(nn.Linear(heads * width, width), nn.Dropout(0.0))

    def forward(self, x, z, query_points, points):
        return self.attend(self.to_q(x), *self.to_kv(z).chunk(2, -1), self.angles(query_points), self.angles(points))


class GatedGelu(nn.Module):
    def forward(self, x):
        gate, value = x.chunk(2, -1)
        return functional.gelu(gate) * value


class FeedForward(nn.Module):
    def __init__(self, width, dropout=0.0):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(width, 2 * width), GatedGelu(), nn.Dropout(dropout),
                                 nn.Linear(width, width), nn.Dropout(dropout))

    def forward(self, x):
        return self.net(x)


class Transformer(nn.Module):
    """The stream itself is normalised, before the attention and before the feed-forward layer."""

    def __init__(self, width, heads, scales, dropout):
        super().__init__()
        self.layers = nn.ModuleList(nn.ModuleList([
            nn.LayerNorm(width), SelfAttention(width, heads, scale, dropout),
            nn.LayerNorm(width), FeedForward(width, dropout)]) for scale in scales)

    def forward(self, x, points):
        for norm, attention, second_norm, feed_forward in self.layers:
            x = norm(x)
            x = attention(x, points) + x
            x = second_norm(x)
            x = feed_forward(x) + x
        return x


class Encoder(nn.Module):
    def __init__(self, settings, last, outputs, scales, dropout, embedding_dropout):
        super().__init__()
        width = settings.encoder_emb_dim
        self.to_embedding = nn.Sequential(nn.Linear(settings.in_channels, width, bias=False))
        self.dropout, self.last = nn.Dropout(embedding_dropout), last
        self.s_transformer = Transformer(width, settings.encoder_heads, scales, dropout)
        setattr(self, last, nn.Sequential(nn.Linear(width, outputs, bias=False)))

    def forward(self, x, points):
        return getattr(self, self.last)(self.s_transformer(self.dropout(self.to_embedding(x)), points))


class FourierFeatures(nn.Module):
    def __init__(self, frequencies, scale):
        super().__init__()
        self._B = nn.Parameter(torch.randn(2, frequencies) * scale, requires_grad=False)

    def forward(self, points):
        phases = 2 * math.pi * (points @ self._B)
        return torch.cat([torch.sin(phases), torch.cos(phases)], -1)


class CrossFormer(nn.Module):
    def __init__(self, width, heads, scale):
        super().__init__()
        self.cross_attn_module, self.ffn = CrossAttention(width, heads, scale), FeedForward(width)

    def forward(self, x, z, query_points, points):
        x = self.cross_attn_module(x, z, query_points, points) + x
        return self.ffn(x) + x


def layers(*widths):
    """Linear maps without bias with a GELU after each."""
    parts = []
    for inputs, outputs in zip(widths, widths[1:]):
        parts += [nn.Linear(inputs, outputs, bias=False), nn.GELU()]
    return parts


class SteadyDecoder(nn.Module):
    def __init__(self, settings):
        super().__init__()
        width = settings.out_seq_emb_dim
        self.coordinate_projection = nn.Sequential(
            FourierFeatures(width // 2, settings.fourier_scale), *layers(width, width),
            nn.Linear(width, width, bias=False))
        self.decoding_transformer = CrossFormer(width, settings.decoder_heads, 16 * settings.res)
        self.to_out = nn.Sequential(*layers(width + 2, width, width // 2), nn.Linear(width // 2, settings.out_channels))

    def forward(self, z, query_points, points):
        x = self.decoding_transformer(self.coordinate_projection(query_points), z, query_points, points)
        return self.to_out(torch.cat((x, query_points), -1))


class OFormerSteady(nn.Module):
    """`dropout` 0 switches all of it off; else the rates are the authors': 0.05 after the embedding, 0.03 inside."""

    def __init__(self, settings):
        super().__init__()
        res, depth = settings.res, settings.encoder_depth
        scales = [res * res, res // 4 * res, *[res] * (depth - 2)][:depth]
        inside, first = (0.03, 0.05) if settings.dropout else (0.0, 0.0)
        self.encoder = Encoder(settings, "to_out", settings.out_seq_emb_dim, scales, inside, first)
        self.decoder = SteadyDecoder(settings)

    def forward(self, points, values=None, time=None, query_points=None):
        query_points = points if query_points is None else query_points
        inputs = points if values is None else torch.cat((values, points), -1)
        return self.decoder(self.encoder(inputs, points), query_points, points)


class SeriesDecoder(nn.Module):
    def __init__(self, settings):
        super().__init__()
        width, half = settings.decoder_emb_dim, settings.decoder_emb_dim // 2
        self.steps = settings.forward_steps // settings.out_step
        self.coordinate_projection = nn.Sequential(
            FourierFeatures(half, settings.fourier_scale), *layers(width, width), nn.Linear(width, half, bias=False))
        self.decoding_transformer = CrossFormer(half, settings.decoder_heads, 16 * 64)
        self.expand_feat = nn.Linear(half, width)
        self.propagator = nn.ModuleList(nn.ModuleList([
            nn.LayerNorm(width),
            nn.Sequential(*layers(width + 2, width, width), nn.Linear(width, width, bias=False)),
        ]) for _ in range(settings.propagator_depth))
        self.to_out = nn.Sequential(nn.LayerNorm(width), *layers(width, half, half),
                                    nn.Linear(half, settings.out_channels * settings.out_step))

    def forward(self, z, query_points, points):
        x = self.decoding_transformer(self.coordinate_projection(query_points), z, query_points, points)
        x, outputs = self.expand_feat(x), []
        for _ in range(self.steps):
            for norm, network in self.propagator:
                x = network(torch.cat((norm(x), query_points), -1)) + x
            outputs.append(self.to_out(x).permute(0, 2, 1))
        return torch.cat(outputs, 1)


class OFormerSeries(nn.Module):
    def __init__(self, settings):
        super().__init__()
        depth = settings.encoder_depth
        scales = [32, 16, 8, 8, *[1] * (depth - 4)] if depth > 4 else [32, *[16] * (depth - 2), 1]
        scales = [64 * scale for scale in scales]
        self.encoder = Encoder(settings, "project_to_latent", settings.decoder_emb_dim // 2, scales, 0.0, 0.0)
        self.decoder = SeriesDecoder(settings)

    def forward(self, points, values=None, time=None, query_points=None):
        query_points = points if query_points is None else query_points
        inputs = points if values is None else torch.cat((values, points), -1)
        return self.decoder(self.encoder(inputs, points), query_points, points)
