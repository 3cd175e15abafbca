"""What the models of Neural-Solver-Library have in common: lifting, padding and the projection of clouds.

A model is called with points [batch, points, axes], values [batch, points, fields] or None and time
[batch, 1] or None and gives [batch, points, outputs]. Modules and parameters have the official names.
"""

import math

import torch
import torch.nn.functional as functional
from torch import nn

ACTIVATIONS = {"gelu": nn.GELU, "tanh": nn.Tanh, "sigmoid": nn.Sigmoid, "relu": nn.ReLU, "softplus": nn.Softplus,
               "ELU": nn.ELU, "silu": nn.SiLU}


def is_cloud(settings):
    return settings.geotype == "unstructured"


class Mlp(nn.Module):
    """Linear, activation, `inner` layers that are added to their input, Linear."""

    def __init__(self, inputs, width, outputs, act="gelu", inner=0):
        super().__init__()
        activation = ACTIVATIONS[act]
        self.linear_pre = nn.Sequential(nn.Linear(inputs, width), activation())
        self.linear_post = nn.Linear(width, outputs)
        self.linears = nn.ModuleList(nn.Sequential(nn.Linear(width, width), activation()) for _ in range(inner))

    def forward(self, x):
        x = self.linear_pre(x)
        for layer in self.linears:
            x = layer(x) + x
        return self.linear_post(x)


def distances_to_lattice(shape, reference):
    """[1, points, reference^axes]: how far every grid point is from each point of a lattice in the unit cube."""
    grid = torch.stack(torch.meshgrid(*(torch.linspace(0, 1, n) for n in shape), indexing="ij"), -1)
    lattice = torch.meshgrid(*(torch.linspace(0, 1, reference) for _ in shape), indexing="ij")
    lattice = torch.stack(lattice, -1).flatten(0, -2)
    return torch.sqrt(((grid.flatten(0, -2).unsqueeze(1) - lattice) ** 2).sum(-1)).unsqueeze(0)


def time_embedding(time, width):
    """[batch, 1] -> [batch, 1, width], cosines before sines."""
    half = width // 2
    frequencies = torch.exp(-math.log(10000) * torch.arange(half, dtype=torch.float32, device=time.device) / half)
    angles = time.unsqueeze(-1).float() * frequencies
    embedding = torch.cat([torch.cos(angles), torch.sin(angles)], -1)
    return functional.pad(embedding, (0, width % 2))


def small_initial_values(module):
    """Linear weights N(0, 0.02^2), biases 0: the transformers of the library."""
    if isinstance(module, nn.Linear):
        nn.init.trunc_normal_(module.weight, std=0.02)
        if module.bias is not None:
            nn.init.zeros_(module.bias)


class LibraryModel(nn.Module):
    """Positions, lifting `preprocess`, `placeholder` and `time_fc`; `lifted` is the width after the lifting."""

    def __init__(self, settings, lifted=None, placeholder=False, lifting=True):
        super().__init__()
        self.settings, width = settings, settings.n_hidden
        self.lifted = lifted or width
        self.position_width = settings.space_dim
        if settings.unified_pos and not is_cloud(settings):
            table = distances_to_lattice(settings.shapelist, settings.ref)
            self.register_buffer("table", table, persistent=False)
            self.position_width = table.shape[-1]
        if placeholder:
            self.placeholder = nn.Parameter(torch.rand(self.lifted) / self.lifted)
        if lifting:
            self.preprocess = self.lifting_mlp(self.position_width + settings.fun_dim)
        if settings.time_input:
            self.time_fc = nn.Sequential(nn.Linear(self.lifted, width), nn.SiLU(), nn.Linear(width, self.lifted))

    def lifting_mlp(self, inputs):
        return Mlp(inputs, 2 * self.settings.n_hidden, self.lifted, self.settings.act)

    def positions(self, points):
        return self.table.repeat(points.shape[0], 1, 1) if hasattr(self, "table") else points

    def finish_lifting(self, features, time):
        """Adds the placeholder, where the model has one, and the time."""
        if hasattr(self, "placeholder"):
            features = features + self.placeholder[None, None, :]
        if time is not None:
            embedding = time_embedding(time, self.lifted).repeat(1, features.shape[1], 1)
            features = features + self.time_fc(embedding)
        return features

    def lift(self, points, values, time):
        positions = self.positions(points)
        features = self.preprocess(positions if values is None else torch.cat((positions, values), -1))
        return self.finish_lifting(features, time)


class GridModel(LibraryModel):
    """Lifting, `body` on an image [batch, channels, rows, columns], head `fc1`, `fc2`.

    A grid is padded with zeros at the bottom and at the right to what `padded_size` says; a cloud goes
    through the projection of Geo-FNO onto a grid of s1 x s2.
    """

    def __init__(self, settings, head, lifted=None, placeholder=False, side=96):
        super().__init__(settings, lifted, placeholder)
        width = self.lifted
        if is_cloud(settings):
            self.size = self.padded = (getattr(settings, "s1", side), getattr(settings, "s2", side))
            modes = getattr(settings, "modes", 12)
            self.fftproject_in = CloudProjection(width, modes, self.size)
            self.fftproject_out = CloudProjection(width, modes, self.size)
            self.iphi = Deformation(getattr(settings, "iphi_width", 32))
        else:
            self.size = tuple(settings.shapelist)
            self.padded = self.padded_size(self.size)
        self.fc1, self.fc2 = nn.Linear(width, head), nn.Linear(head, settings.out_dim)

    def padded_size(self, size):
        return tuple(-(-n // 16) * 16 for n in size)

    def forward(self, points, values=None, time=None):
        features = self.lift(points, values, time)
        if is_cloud(self.settings):
            image = self.fftproject_in.to_grid(features.permute(0, 2, 1), points, self.iphi)
            features = self.fftproject_out.to_points(self.body(image), points, self.iphi).permute(0, 2, 1)
        else:
            (rows, columns), padded = self.size, self.padded
            image = features.permute(0, 2, 1).reshape(features.shape[0], -1, rows, columns)
            if padded != self.size:
                image = functional.pad(image, [0, padded[1] - columns, 0, padded[0] - rows])
            image = self.body(image)
            if padded != self.size:
                image = image[..., :rows, :columns]
            features = image.reshape(*image.shape[:2], -1).permute(0, 2, 1)
        return self.fc2(functional.gelu(self.fc1(features)))


def complex_weights(inputs, outputs, *modes):
    return nn.Parameter(torch.rand(inputs, outputs, *modes, dtype=torch.cfloat) / (inputs * outputs))


def mix_modes(spectrum, weights):
    return torch.einsum("bixy,ioxy->boxy", spectrum, weights)


class CloudProjection(nn.Module):
    """Geo-FNO's non-uniform Fourier transform, without 1/N, on points moved by the learned deformation."""

    def __init__(self, width, modes, size):
        super().__init__()
        self.modes, self.size = modes, size
        self.weights1 = complex_weights(width, width, modes, modes)
        self.weights2 = complex_weights(width, width, modes, modes)

    def waves(self, points, deformation, sign, columns):
        """exp(sign 2 pi i k.xi), [batch, points, 2 modes, columns]; rows 0 .. modes-1, -modes .. -1."""
        modes = self.modes
        rows = torch.cat([torch.arange(0, modes), torch.arange(-modes, 0)]).to(points.device)
        columns = columns.to(points.device)
        first = rows.reshape(-1, 1).repeat(1, len(columns)).float()
        second = columns.reshape(1, -1).repeat(len(rows), 1).float()
        moved, shape = deformation(points), (*points.shape[:2], *first.shape)
        phase = torch.outer(moved[..., 0].reshape(-1), first.reshape(-1)).reshape(shape)
        phase = phase + torch.outer(moved[..., 1].reshape(-1), second.reshape(-1)).reshape(shape)
        return torch.exp(sign * 1j * 2 * math.pi * phase)

    def mixed(self, spectrum):
        modes = self.modes
        return (mix_modes(spectrum[:, :, :modes, :modes], self.weights1),
                mix_modes(spectrum[:, :, -modes:, :modes], self.weights2))

    def to_grid(self, features, points, deformation):
        """[batch, channels, points] -> [batch, channels, s1, s2]"""
        waves, modes = self.waves(points, deformation, -1, torch.arange(0, self.modes)), self.modes
        first, second = self.mixed(torch.einsum("bcn,bnxy->bcxy", features + 0j, waves))
        spectrum = torch.zeros(*first.shape[:2], self.size[0], self.size[1] // 2 + 1,
                               dtype=torch.cfloat, device=features.device)
        spectrum[:, :, :modes, :modes] = first
        spectrum[:, :, -modes:, :modes] = second
        return torch.fft.irfft2(spectrum, s=self.size)

    def to_points(self, image, points, deformation):
        """[batch, channels, s1, s2] -> [batch, channels, points]"""
        spectrum = torch.cat(self.mixed(torch.fft.rfft2(image)), -2)
        spectrum = torch.cat([spectrum, spectrum[..., 1:].flip(-1, -2).conj()], -1)  # k1 -> -1 - k1, as in Geo-FNO
        columns = torch.cat([torch.arange(0, self.modes), torch.arange(-(self.modes - 1), 0)])
        return torch.einsum("bcxy,bnxy->bcn", spectrum, self.waves(points, deformation, 1, columns)).real


class Deformation(nn.Module):
    """The map xi = x + x u(x) of Geo-FNO; `fc_code` is never used."""

    def __init__(self, width):
        super().__init__()
        self.fc0 = nn.Linear(4, width)
        self.fc_code = nn.Linear(42, width)
        self.fc_no_code = nn.Linear(3 * width, 4 * width)
        self.fc1, self.fc2, self.fc3 = (nn.Linear(4 * width, 4 * width) for _ in range(3))
        self.fc4 = nn.Linear(4 * width, 2)
        self.register_buffer("center", torch.full((1, 1, 2), 1e-4), persistent=False)
        self.register_buffer("frequencies", math.pi * 2.0 ** torch.arange(width // 4), persistent=False)

    def forward(self, points):
        offset = points - self.center
        angle, radius = torch.atan2(offset[..., 1], offset[..., 0]), torch.norm(offset, dim=-1)
        polar = torch.stack([points[..., 0], points[..., 1], angle, radius], -1)
        phases = self.frequencies * polar.unsqueeze(-1)  # [batch, points, 4, width / 4]
        features = torch.cat([self.fc0(polar), torch.sin(phases).flatten(2), torch.cos(phases).flatten(2)], -1)
        features = self.fc_no_code(features)
        for layer in (self.fc1, self.fc2, self.fc3):
            features = torch.tanh(layer(features))
        return points + points * self.fc4(features)
